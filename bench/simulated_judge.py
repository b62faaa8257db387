"""A judge of steps that is right with a given probability: what a judge of that quality would do to training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.appraise import AskModels, StateProgress
from bough.appraise.appraise import Columns
from bough.needs import ORACLE, Need, appraised
from bough.tree import Entry, Kind, Ternary, Tree, Verdict, derive


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJudge:
    """1 at each turn that the judge calls wrong, else 0, in the column "critique", as `PathCritique` has it.

    A turn is wrong if the oracle's plan is no shorter after it, or the path ends there without success. Each verdict is
    true with probability `accuracy`, independent of the others. It replays the path and asks no model.

    Attributes:
        accuracy: The probability of a true verdict.
    """

    accuracy: float = 0.8

    needs = frozenset({ORACLE})

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised("critique")})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """A verdict for each turn, at its action."""
        progress = await StateProgress().appraise(trees, ask)
        columns = zip(trees, progress["progress"], strict=True)
        return {"critique": [self._verdicts(tree, column) for tree, column in columns]}

    def _verdicts(self, tree: Tree, progress: Mapping[int, Entry]) -> dict[int, Entry]:
        rng = np.random.default_rng(derive(0, "judge", tree.task.id, *(str(each.value) for each in progress.values())))
        good = helpful_turns(tree, {node: entry.value for node, entry in progress.items()})
        lies = rng.random(len(good)) >= self.accuracy
        return {
            node: Entry(value=float(helps == lie), verdict=Verdict.OK, votes=1)
            for (node, helps), lie in zip(sorted(good.items()), lies.tolist(), strict=True)
        }


def helpful_turns(tree: Tree, progress: Mapping[int, float]) -> dict[int, bool]:
    """Whether each action with a progress of its state led to a nearer state, or to success."""
    good = dict.fromkeys(progress, False)
    for node in range(1, tree.nodes):
        above = int(tree.parent[node])
        while above >= 0 and tree.kind[above] != Kind.ACTION:
            above = int(tree.parent[above])
        if above not in good:
            continue
        if tree.success[node] == Ternary.YES or (node in progress and progress[node] > progress[above]):
            good[above] = True
    return good
