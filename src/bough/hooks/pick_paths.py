"""A selection of the paths of a tree before credit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bough.tree import Ints, Rewarded, counted, is_replayed, keep_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class PickPaths:
    """Tree-GRPO's and TreeRL's leaves (arXiv 2509.21240, 2506.11902): some paths of each tree are trained on.

    The others are cut out before anyone is credited, so that they are in no baseline. A path succeeds whose return is
    above `worth`. Which of ten paths stay, 0 to 8 of which fail, with `keep` = 4:

        random      any 4: Tree-GRPO, whose groups thereby are of one size
        success     any 4, but with none that succeeds in them, number 9 for one of them: TreeRL, 16 of 30 paths
        balanced    number 9 and any 3; of 5 that fail and 5 that succeed, 2 of each

    TreeRL values its nodes by all paths and then picks; cut before, as here, they are valued by those that are trained
    on. A tree with no more than `keep` paths stays as it is. What failed through a fault is cut out with the rest.

    Metrics: `pick/kept`, paths of this step.

    Attributes:
        keep: Paths of a tree, >= 1.
        choice: Which.
        worth: Return above which a path succeeds.
    """

    keep: int = 16
    choice: Literal["random", "success", "balanced"] = "success"
    worth: float = 0.5

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"PickPaths.keep: got {self.keep}; need at least 1")

    def pick(self, returns: Sequence[float], luck: np.random.Generator) -> list[int]:
        """Which of some paths stay, ascending."""
        order: list[int] = luck.permutation(len(returns)).tolist()
        good = [path for path in order if returns[path] > self.worth]
        bad = [path for path in order if returns[path] <= self.worth]
        if self.choice == "random":
            return sorted(order[: self.keep])
        if self.choice == "success":
            return sorted([*good[:1], *(path for path in order if path not in good[:1])][: self.keep])
        half = self.keep // 2
        few = min(len(good), max(half, self.keep - len(bad)))
        return sorted([*good[:few], *bad[: self.keep - few]])

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> "PickPathsState":
        """It remembers nothing."""
        del vocab_tokens, device, seed
        return PickPathsState(self)


class PickPathsState:
    """A picker at work."""

    ready: bool = True

    def __init__(self, settings: PickPaths) -> None:
        self._settings = settings
        self._kept = 0

    def advise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The trees with fewer paths."""
        luck = np.random.default_rng(seed)
        picked = [each if is_replayed(each.tree) else self._cut(each, luck) for each in rewarded]
        self._kept += sum(len(counted(each.tree)) for each in picked)
        return picked

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """The step is over."""
        del moved
        kept, self._kept = self._kept, 0
        return {"pick/kept": float(kept)}

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to take back."""
        del state

    def _cut(self, rewarded: Rewarded, luck: np.random.Generator) -> Rewarded:
        ends: Ints = counted(rewarded.tree)
        if len(ends) <= self._settings.keep:
            return rewarded
        return keep_paths(rewarded, ends[self._settings.pick(rewarded.returns().tolist(), luck)])
