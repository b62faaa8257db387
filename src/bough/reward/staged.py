"""A reward in stages: a later stage pays only after the earlier ones."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.piece import piece
from bough.reward.stages import Finished, Solved, Stage, ValidActions, WellFormed
from bough.tree import Floats, RewardRange, Tree, counted
from bough.tree.endings import path_reward_nodes


@piece
class StagedReward:
    """Channel "staged": progressive reward shaping (PRS, arXiv 2512.07478), stage after stage.

    With s_k in [0, 1] how far a path meets stage k, and w_k its pay, the path is paid at its last action, or at its
    leaf where other paths go through that action,

        sum over k of  w_k s_k  [s_j = 1 for all j < k]

    so a path gets what it has of the first stage that it does not meet wholly, and nothing of the later ones: a right
    answer with a malformed call earns less than a wrong one without. Pays .1 .1 .1 .7:

        well formed   valid   finished   quality         reward
                 .5       1          1         1            .05
                  1      .5          1         1            .15
                  1       1          0         1             .2
                  1       1          1        .6            .72

    Once all paths of a task meet a stage, its pay is the same for all and leaves their comparison. The stages and the
    order are the paper's, in general terms; it does not state their pays in a form that was available.

    Attributes:
        stages: The demands, in order; the last is the quality of the result.
        shares: The pay of each, > 0.
    """

    stages: tuple[Stage, ...] = (WellFormed(), ValidActions(), Finished(), Solved())
    shares: tuple[float, ...] = (0.1, 0.1, 0.1, 0.7)

    def __post_init__(self) -> None:
        if not self.stages or len(self.shares) != len(self.stages):
            raise ValueError(
                f"StagedReward.shares: got {len(self.shares)} for {len(self.stages)} stages; need one for each stage, "
                "and at least one stage"
            )
        if not all(pay > 0 for pay in self.shares):
            raise ValueError(f"StagedReward.shares: got {self.shares}; need numbers above 0")

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """0 to the sum of the shares."""
        return {"staged": RewardRange(low=0, high=sum(self.shares), per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each counted path, or at its leaf where other paths go through that action."""
        return [{"staged": self._pay(tree)} for tree in group]

    def of_paths(self, met: Sequence[Floats]) -> Floats:
        """[P]: the rewards of paths, by how far they meet each stage, [P] each."""
        total, reached = np.zeros(len(met[0])), np.ones(len(met[0]), dtype=np.bool_)
        for pay, share in zip(self.shares, met, strict=True):
            total += np.where(reached, pay * share, 0.0)
            reached &= share >= 1
        return total

    def _pay(self, tree: Tree) -> Floats:
        paid = np.zeros(tree.nodes)
        paid[path_reward_nodes(tree, counted(tree))] = self.of_paths([stage(tree) for stage in self.stages])
        return paid
