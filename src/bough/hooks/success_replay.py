"""Replay of successful paths in groups without a success."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.piece import Above, AtLeast, piece
from bough.tree import (
    Ints,
    Rewarded,
    counted,
    groups,
    keep_paths,
    leaves,
)


@piece
class SuccessReplay:
    """ARPO's success replay (arXiv 2505.16282): a failed group gets an earlier success; needs groups of 2 or more.

    Up to `keep` paths of each task with a return above `success_above` are stored, the newest. When all paths of a
    group have a low and nearly equal return, a stored path replaces the group's first before credit:

        standard deviation of the returns (ddof 0) < `spread`    and    their mean < `low`

        returns 0 0 0 0, one success of 1 kept  ->  credited are 1 0 0 0        returns 0 0 0 0.4  ->  left as they are

    The replaced path is removed from its tree, so that it is in no baseline. The stored path is a separate tree of the
    same task: its tokens with the log-probabilities under the sampling policy, and that policy's version. A clipped
    ratio is therefore relative to the right policy, and the path's weight falls with its present probability. The
    authors' code (`ray_trainer.py`) recomputes the log-probabilities under the present policy, from which the ratio
    starts at 1 as if the path were newly sampled: biased, and independent of the age of the path. Metrics include the
    removed path.

    A group of one has no comparison and is unchanged; the authors' code would replace it whole. Successes of a batch
    are stored after its groups are processed, as in the authors' code.

    Metrics: `replay/used`, groups of this step that got a success; `replay/kept`, paths; `replay/tasks` with any.

    Attributes:
        keep: Maximum number of paths of a task, >= 1.
        success_above: Return above which a path is stored (0.1).
        spread: Standard deviation below which a group's returns count as equal (0.05), > 0.
        low: Mean below which a group has failed (0.2).
    """

    keep: Annotated[int, AtLeast(1)] = 8
    success_above: float = 0.1
    spread: Annotated[float, Above(0)] = 0.05
    low: float = 0.2

    def build(self, setup: HookSetup) -> "SuccessReplayState":
        """Return a state without paths."""
        return SuccessReplayState(self, setup)


@dataclass(slots=True, kw_only=True)
class SuccessReplayData:
    """The state of the hook.

    Attributes:
        kept: The stored paths by task id, oldest first; each a tree of one path.
    """

    kept: dict[str, list[Rewarded]] = field(default_factory=dict[str, list[Rewarded]])


class SuccessReplayState(BatchHook[SuccessReplay]):
    """The stored paths."""

    def __init__(self, settings: SuccessReplay, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: SuccessReplayData = SuccessReplayData()
        self._used = 0

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Add a success to each failed group, then store the batch's own successes."""
        generator = np.random.default_rng(seed)
        swapped: dict[int, list[Rewarded]] = {}
        for group in groups(rewarded):
            kept = self.data.kept.get(group[0].tree.task.id)
            if kept and self._failed(group):
                first = next(each for each in group if len(counted(each.tree)))
                swapped[id(first)] = [kept[int(generator.integers(len(kept)))], *_without_first(first)]
        self._used += len(swapped)
        for each in rewarded:
            self._keep(each)
        return [one for each in rewarded for one in swapped.get(id(each), [each])]

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        used, self._used = self._used, 0
        kept = [len(paths) for paths in self.data.kept.values()]
        return {"replay/used": float(used), "replay/kept": float(sum(kept)), "replay/tasks": float(len(kept))}

    def _failed(self, group: Sequence[Rewarded]) -> bool:
        """Whether all paths of a group have a low, nearly equal return."""
        returns = np.concatenate([each.returns() for each in group])
        return len(returns) > 1 and bool(returns.std() < self.settings.spread and returns.mean() < self.settings.low)

    def _keep(self, rewarded: Rewarded) -> None:
        """Store the successful paths of a tree."""
        tree = rewarded.tree
        good = counted(tree)[rewarded.returns() > self.settings.success_above]
        if tree.replayed or not len(good):
            return
        paths = self.data.kept.setdefault(tree.task.id, [])
        for end in good.tolist():
            kept = keep_paths(rewarded, np.asarray([end]))
            paths.append(replace(kept, tree=replace(kept.tree, replayed=True), estimates={}))
        del paths[: -self.settings.keep]


def _without_first(rewarded: Rewarded) -> list[Rewarded]:
    """The tree without its first counted path; nothing for a tree with one path."""
    tree = rewarded.tree
    rest: Ints = np.setdiff1d(leaves(tree), counted(tree)[:1])
    return [keep_paths(rewarded, rest)] if len(rest) else []
