"""A selection of the paths of a tree before credit."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.piece import AtLeast, piece
from bough.tree import Ints, Rewarded, counted, keep_paths


@piece
class PickPaths:
    """Tree-GRPO's and TreeRL's leaves (arXiv 2509.21240, 2506.11902): some paths of each tree are trained on.

    The other paths are removed before credit, so that they are in no baseline. A path succeeds if its return is
    above `success_above`. Example of ten paths, 0 to 8 of which fail, with `keep` = 4:

        random      any 4: Tree-GRPO, so that all groups have the same size
        success     any 4; if none of them succeeds, number 9 replaces one of them: TreeRL, 16 of 30 paths
        balanced    number 9 and any 3; of 5 that fail and 5 that succeed, 2 of each

    TreeRL values its nodes by all paths and then picks. Here paths are removed first, so values use only trained paths.
    A tree with at most `keep` paths is unchanged. Paths that failed through a fault are removed as well.

    Metrics: `pick/kept`, paths of this step.

    Attributes:
        keep: Maximum number of paths of a tree, >= 1.
        choice: The selection rule.
        success_above: Return above which a path succeeds.
    """

    keep: Annotated[int, AtLeast(1)] = 16
    choice: Literal["random", "success", "balanced"] = "success"
    success_above: float = 0.5

    def pick(self, returns: Sequence[float], rng: np.random.Generator) -> list[int]:
        """Indices of the selected paths, ascending."""
        order: list[int] = rng.permutation(len(returns)).tolist()
        good = [path for path in order if returns[path] > self.success_above]
        bad = [path for path in order if returns[path] <= self.success_above]
        if self.choice == "random":
            return sorted(order[: self.keep])
        if self.choice == "success":
            return sorted([*good[:1], *(path for path in order if path not in good[:1])][: self.keep])
        half = self.keep // 2
        few = min(len(good), max(half, self.keep - len(bad)))
        return sorted([*good[:few], *bad[: self.keep - few]])

    def build(self, setup: HookSetup) -> "PickPathsState":
        """Return a selector; it has no state."""
        return PickPathsState(self, setup)


class PickPathsState(BatchHook[PickPaths]):
    """Selects paths."""

    def __init__(self, settings: PickPaths, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._kept = 0

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The trees with the selected paths."""
        rng = np.random.default_rng(seed)
        picked = [each if each.tree.replayed else self._cut(each, rng) for each in rewarded]
        self._kept += sum(len(counted(each.tree)) for each in picked)
        return picked

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        kept, self._kept = self._kept, 0
        return {"pick/kept": float(kept)}

    def _cut(self, rewarded: Rewarded, rng: np.random.Generator) -> Rewarded:
        ends: Ints = counted(rewarded.tree)
        if len(ends) <= self.settings.keep:
            return rewarded
        return keep_paths(rewarded, ends[self.settings.pick(rewarded.returns().tolist(), rng)])
