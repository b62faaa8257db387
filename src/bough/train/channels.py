"""Metrics of each reward channel of a batch: its size, and whether it orders paths as success does."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.hooks.tie_tolerance import tie_tolerance
from bough.tree import Floats, Rewarded, Ternary, counted, groups, sum_to_root


def real_episodes(rewarded: Sequence[Rewarded], estimated: Sequence[Rewarded]) -> list[Rewarded]:
    """The trees of a step, each once, with all channels: the channels of rewards and of hooks.

    A hook may copy trees, cut paths off, or add trees of earlier steps or its own; none of these are episodes of the
    step. A tree that a hook cut or replaced has the channels of the rewards alone.

    Args:
        rewarded: The trees before the hooks.
        estimated: The trees after the hooks.
    """
    after: dict[tuple[str, bytes], list[Rewarded]] = {}
    for each in estimated:
        if not each.tree.replayed:
            after.setdefault(_key(each), []).append(each)
    return [after[key].pop(0) if after.get(key := _key(each)) else each for each in rewarded]


def _key(rewarded: Rewarded) -> tuple[str, bytes]:
    """Identifies a tree by its task, its tokens and where they branch."""
    tree = rewarded.tree
    return tree.task.id, b"".join((tree.parent.tobytes(), tree.span.tobytes(), tree.token.tobytes()))


def channel_metrics(rewarded: Sequence[Rewarded]) -> dict[str, float]:
    """By channel, over the counted paths, each with the sum of its rewards.

    `reward/NAME` is the mean and `reward_std/NAME` the standard deviation (ddof 1). `reward_nonzero_std/NAME`
    is the share of groups with several paths whose standard deviation of this reward is above 0: only these learn from
    it. `reward_pair_accuracy/NAME` is the pairwise accuracy: the share of pairs of a success and a failure of one task
    in which the success is paid more; a tie counts half. 1 is a reward that orders paths as success does, .5 one
    unrelated to success, 0 its opposite. It is missing without such pairs.
    """
    return column_metrics(rewarded, [each.channels for each in rewarded], "reward")


def column_metrics(
    rewarded: Sequence[Rewarded], columns: Sequence[Mapping[str, Floats]], kind: str
) -> dict[str, float]:
    """The metrics of `channel_metrics` for other columns of trees, with names that begin with `kind`.

    Args:
        rewarded: The trees.
        columns: Of each tree, by name, [N]. A path whose sum is nan has no value, and enters no metric of the column.
        kind: The beginning of the names.
    """
    names = sorted({name for each in columns for name in each})
    of_tree = {id(each): own for each, own in zip(rewarded, columns, strict=True)}
    found = [_group(group, [of_tree[id(each)] for each in group], names) for group in groups(rewarded)]
    metrics: dict[str, float] = {}
    for place, name in enumerate(names):
        known = [(pay[place][there], won[there]) for pay, won in found if (there := ~np.isnan(pay[place])).any()]
        pays = [pay for pay, _ in known]
        if not pays:
            continue
        every = np.concatenate(pays)
        several = [pay for pay in pays if len(pay) > 1]
        pairs = [_ordered(pay, won) for pay, won in known]
        count = sum(number for _, number in pairs)
        metrics[f"{kind}/{name}"] = float(every.mean())
        metrics[f"{kind}_std/{name}"] = float(every.std(ddof=1)) if len(every) > 1 else 0.0
        metrics[f"{kind}_nonzero_std/{name}"] = sum(_differ(pay) for pay in several) / max(1, len(several))
        if count:
            metrics[f"{kind}_pair_accuracy/{name}"] = sum(right for right, _ in pairs) / count
    return metrics


def _group(
    group: Sequence[Rewarded], columns: Sequence[Mapping[str, Floats]], names: Sequence[str]
) -> tuple[Floats, np.ndarray]:
    """[columns, P] the sums of the paths of a task, and [P] whether each succeeds."""
    ends = [counted(each.tree) for each in group]
    won = np.concatenate([each.tree.success[end] == Ternary.YES for each, end in zip(group, ends, strict=True)])
    zero = [np.zeros(each.tree.nodes) for each in group]
    pays = [
        np.concatenate(
            [
                sum_to_root(each.tree, own.get(name, none))[end]
                for each, own, end, none in zip(group, columns, ends, zero, strict=True)
            ]
        )
        for name in names
    ]
    return np.asarray(pays, dtype=np.float64).reshape(len(names), len(won)), won


def _differ(pay: Floats) -> bool:
    """Whether the standard deviation over paths is above 0, rounding aside."""
    return bool(np.ptp(pay) > tie_tolerance(pay))


def _ordered(pay: Floats, won: np.ndarray) -> tuple[float, int]:
    """Pairs of a success and another path: those in which the success is paid more, a tie as half; and all."""
    good, bad = pay[won], np.sort(pay[~won])
    below, up_to = np.searchsorted(bad, good, "left"), np.searchsorted(bad, good, "right")
    return float((below + up_to).sum()) / 2, len(good) * len(bad)
