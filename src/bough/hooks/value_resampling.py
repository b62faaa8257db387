"""Groups without a signal are replaced by the batch's most valuable ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.tie_tolerance import tie_tolerance
from bough.needs import COPIES, Need, estimate
from bough.tree import Floats, Rewarded, groups


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueResampling:
    """VSPO's batches (arXiv 2512.07478): tied groups are replaced by groups of the batch, drawn by their value.

    With mu and sigma (ddof 1) the mean and the standard deviation of a group's returns, its value is

        V = (best - mu) * sigma        returns 1 0 0 0 0  .358        1 0 0 1 0  .329        1 1 1 1 0  .089

    so tasks are preferred that are hard and possible. For each group whose returns are all equal one of the others is
    drawn, with probabilities proportional to V, with replacement. A copy has a task id of its own, so its baseline is
    that of the group it copies. The estimate "copies" is how often a group is in the batch; `DampedCopies` needs it.
    Without damping, repeated groups dominate the update: in the paper that is worse than dropping the tied groups.

    Here the paths of this step are used again, as in DAPO's refill without new samples; a batch in which all groups are
    tied stays as it is. The paper's code is not released.

    Metrics: `resampled/groups`, copies in this step; `resampled/most`, the largest number of copies of a group.

    Attributes:
        best: The largest return of a path; a mean above it counts as the best.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({estimate(COPIES)})

    best: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.best):
            raise ValueError(f"ValueResampling.best: got {self.best}; need a finite number")

    def build(self, setup: HookSetup) -> "ValueResamplingState":
        """Return the state: counts of a step."""
        return ValueResamplingState(self, setup)

    def value(self, returns: Floats) -> float:
        """V of a group with these returns; 0 for fewer than two."""
        if len(returns) < 2:
            return 0.0
        return max(0.0, self.best - float(returns.mean())) * float(returns.std(ddof=1))


class ValueResamplingState(BatchHook[ValueResampling]):
    """The replacements of a step; nothing is kept across steps."""

    def __init__(self, settings: ValueResampling, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._drawn, self._most = 0, 1

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch with copies in the places of tied groups."""
        members = groups(rewarded)
        returns = [np.concatenate([each.returns() for each in group]) for group in members]
        tied = np.asarray(
            [len(each) < 2 or float(each.std()) <= tie_tolerance(each) for each in returns], dtype=np.bool_
        )
        chosen = self._draw(returns, tied, seed)
        count = np.bincount(chosen, minlength=len(members)) + 1
        self._drawn += len(chosen)
        self._most = max(self._most, int(count.max(initial=1)))
        if not len(chosen):
            return [_marked(each, 1) for each in rewarded]
        replacing: dict[int, int] = dict(zip(np.flatnonzero(tied).tolist(), chosen.tolist(), strict=True))
        batch = list[Rewarded]()
        for place, group in enumerate(members):
            source = replacing.get(place)
            if source is None:
                batch += [_marked(each, int(count[place])) for each in group]
            else:
                batch += [_copy(_marked(each, int(count[source])), place) for each in members[source]]
        return batch

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        drawn, most = self._drawn, self._most
        self._drawn, self._most = 0, 1
        return {"resampled/groups": float(drawn), "resampled/most": float(most)}

    def _draw(self, returns: Sequence[Floats], tied: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
        """[tied groups] the group that replaces each; empty where all are tied."""
        none = np.zeros(0, dtype=np.int64)
        if tied.all():
            return none
        value = np.asarray([self.settings.value(each) for each in returns]) * ~tied
        # Returns above `best` can leave no group with a value.
        weight = value if value.sum() > 0 else (~tied).astype(np.float64)
        return np.random.default_rng(seed).choice(len(value), int(tied.sum()), p=weight / weight.sum())


def _marked(rewarded: Rewarded, copies: int) -> Rewarded:
    """The tree with the number of copies of its group."""
    copied = np.full(len(rewarded.tree.token), float(copies))
    return replace(rewarded, estimates={**rewarded.estimates, COPIES: copied})


def _copy(rewarded: Rewarded, place: int) -> Rewarded:
    """The tree as a group of its own, for the place of another one."""
    tree = rewarded.tree
    task = replace(tree.task, id=f"{tree.task.id} copy {place}")
    return replace(rewarded, tree=replace(tree, task=task, replayed=True))
