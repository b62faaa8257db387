"""Health checks of a run: they detect a missing learning signal, and stop the run with the likely cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bough.curate import NO_SIGNAL
from bough.train.run import Health
from bough.tree import (
    UNJUDGED,
    ActionCounts,
    Ternary,
    Tree,
    TruncatedBy,
    action_in,
    action_text,
    counted,
    fault_in,
    leaves,
    text_in,
)
from bough.usercode.origin import shorten

MOST_SHOWN = 200
"""Maximum number of characters of an action, and of its answer, in a message."""


class NoLearningSignal(RuntimeError):
    """The run cannot learn. The message has the likely cause, and what to change."""


@dataclass(frozen=True, slots=True)
class HealthState:
    """Counts consecutive batches without a non-zero advantage, and with cut actions.

    Attributes:
        flat: Consecutive batches without any advantage or revised path.
        solved: Number of these batches in which every path succeeded.
        unsolved: Number of these batches in which no path succeeded.
        cut: Consecutive batches in which too many actions were cut off, whatever their advantages.
    """

    flat: int = 0
    solved: int = 0
    unsolved: int = 0
    cut: int = 0


def check_paths(trees: Sequence[Tree], unstarted: Mapping[str, str]) -> None:
    """Raise when no path of a batch ended regularly.

    Raises:
        NoLearningSignal: with the last fault.
    """
    if any(len(counted(tree)) for tree in trees):
        return
    ends = [(tree, int(leaf)) for tree in trees for leaf in leaves(tree)]
    recorded = [fault for tree, leaf in ends if (fault := fault_in(tree.info[leaf])) is not None]
    faults = [*unstarted.values(), *recorded] or ["no fault was recorded"]
    count, unjudged = len(ends) + len(unstarted), sum(fault.startswith(UNJUDGED) for fault in faults)
    if unjudged == count:
        raise NoLearningSignal(
            f"none of {count} paths was judged; need at least one to learn from. Take another model for the appraiser, "
            f"allow it longer answers (max_tokens), or change how they are read. The last fault: {faults[-1]}"
        )
    judged = f", {unjudged} for want of a judgement" if unjudged else ""
    raise NoLearningSignal(
        f"none of {count} paths came to a regular end{judged}; need at least one to learn from. "
        f"The last fault: {faults[-1]}"
    )


def count_solved(trees: Sequence[Tree]) -> int:
    """Number of the demonstrations that solve their task."""
    return sum(bool((tree.success[counted(tree)] == Ternary.YES).any()) for tree in trees)


def unsolved_reason(trees: Sequence[Tree], turns: int) -> str:
    """Why demonstrations fail, where the trees show it, and what to do about it; "" where they do not.

    The reasons are the first action that the environment calls invalid, with its answer, and the limit of turns.
    """
    cut = sum(bool((tree.truncated_by == TruncatedBy.TURNS).any()) for tree in trees)
    plan = "" if count_solved(trees) else "; check `plan` of the environment"
    wrong = [(tree, int(node)) for tree in trees for node in np.flatnonzero(tree.valid == Ternary.NO)[:1]]
    for tree, node in wrong[:1]:
        after = [text_in(tree.info[each]) or "" for each in np.flatnonzero(tree.parent == node)]
        action = shorten(action_text(action_in(tree.info[node])), MOST_SHOWN)
        answer = shorten("".join(after[:1]), MOST_SHOWN)
        plan += f"; {len(wrong)} have an invalid action, first {action!r}, answered by {answer!r}"
    return f"{plan}; {cut} reached limits.turns={turns}" if cut else plan


def next_health(state: HealthState, *, signals: int, success: float, cut: bool = False) -> HealthState:
    """The state after a batch.

    Args:
        state: The state before it.
        signals: Number of its trees with a non-zero advantage, and of revised paths.
        success: Fraction of its paths that succeeded.
        cut: Whether too many of its actions were cut off, see `mostly_cut`.
    """
    now = HealthState(cut=state.cut + 1 if cut else 0)
    if signals:
        return now
    solved, unsolved = state.solved + (success == 1), state.unsolved + (success == 0)
    return replace(now, flat=state.flat + 1, solved=solved, unsolved=unsolved)


def mostly_cut(counts: ActionCounts, health: Health) -> bool:
    """Whether `health.cut_share` of the actions or more were cut off at the token limit."""
    return counts.actions > 0 and counts.cut >= health.cut_share * counts.actions


def is_cut(state: HealthState, health: Health) -> bool:
    """Whether the last `health.cut_batches` batches were mostly cut off."""
    return 0 < health.cut_batches <= state.cut


def is_flat(state: HealthState, health: Health) -> bool:
    """Whether the last `health.dead_batches` batches had no advantage."""
    return state.flat >= health.dead_batches


def is_solved(state: HealthState, health: Health) -> bool:
    """Whether the run is flat and every path of these batches succeeded."""
    return is_flat(state, health) and state.solved == state.flat


def is_over(state: HealthState, health: Health) -> bool:
    """Whether the run ends before its last step: solved, or for a reason that `check_signal` raises."""
    return is_flat(state, health) or is_cut(state, health)


def check_signal(state: HealthState, health: Health, dropped: Mapping[str, int] | None = None) -> None:
    """Raise after too many batches without an advantage or with cut actions, unless the tasks are solved.

    Args:
        state: The state after the last batch.
        health: The settings.
        dropped: Number of groups of the last batch that filters dropped, by reason.

    Raises:
        NoLearningSignal: after `health.dead_batches` batches without an advantage, or `health.cut_batches` cut ones.
    """
    if is_solved(state, health):
        return
    if is_cut(state, health):
        raise NoLearningSignal(
            f"in {state.cut} batches in a row {health.cut_share:.0%} of the actions or more were cut off at the token "
            "limit, so the policy is paid for beginnings of actions. Raise sampling.max_tokens, warm up longer, or, "
            "where actions without an end are normal, set health.cut_batches=0"
        )
    if not is_flat(state, health):
        return
    if state.unsolved == state.flat:
        why = "no path succeeds. Warm up on more demonstrations (warmup.demonstrations), take easier tasks, reward"
        why += " partial progress, or raise sampling.max_tokens if actions are cut off"
    else:
        why = "the paths of each group all earn the same. Raise sampling.temperature or the paths per group, or"
        why += " check the rewards in the report's trees"
    filtered = [f"{count} as {reason}" for reason, count in (dropped or {}).items() if count and reason != NO_SIGNAL]
    if filtered:
        why += f". Filters dropped groups of the last batch: {', '.join(filtered)}"
    raise NoLearningSignal(f"{state.flat} batches in a row had no advantage: {why}")


def check_gap(gap: float, health: Health) -> None:
    """Raise when the engine and the learner do not compute the same policy.

    Raises:
        NoLearningSignal: when the mean difference of their log-probabilities is too large.
    """
    if gap > health.gap:
        raise NoLearningSignal(
            f"the engine's and the learner's log-probabilities differ by {gap:.3g} nats on average; need at most "
            f"{health.gap:g} (health.gap). Their weights or their arithmetic differ: check engine and policy dtypes"
        )
