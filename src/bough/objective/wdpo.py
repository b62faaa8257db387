"""DPO weighted by the gap of the advantages."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import PATHS, REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import Above, piece


@piece
class WDpo:
    """W-DPO (StepORLM, arXiv 2509.22558): DPO with pairs weighted by their gap in advantage; needs path view.

    With z = beta * margin as in `Dpo` and g the difference of the two advantages:

        loss = - sum over pairs of g * log sigmoid(z) / sum of g

    Gaps of 2 and 1 weigh 2/3 and 1/3. Weights that sum to 1 leave the size of the loss to `beta`.

    StepORLM's loss is `WDpo(max_weight=1, reference=False)`, with the advantages of `SolverAndJudge`: the weight w of a
    pair is g, at most 1, and the margin is log p(winner) - log p(loser) without a reference:

        loss = mean over pairs of - w * log sigmoid(beta * margin)

    A margin of 2 with beta .1 costs .598139 at weight 1, and .239256 at .4.

    Metrics: as of `Dpo`.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        max_weight: Maximum weight of a pair, > 0; None for weights that sum to 1.
        reference: Whether the margin is relative to the reference policy.
        pairs: Selects the preference pairs.
    """

    beta: Annotated[float, Above(0)] = 0.1
    max_weight: Annotated[float | None, Above(0)] = None
    reference: bool = True
    pairs: Pairs = Pairs(choice="all")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and, with `reference`, the reference's log-probabilities."""
        return frozenset({PATHS, REFERENCE}) if self.reference else frozenset({PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "WDpo")
        if self.reference:
            margin = self.beta * pairs.margin(columns)
        else:
            margin = self.beta * (pairs.winner.sums(columns.logprob) - pairs.loser.sums(columns.logprob))
        each = -torch.nn.functional.logsigmoid(margin)
        if self.max_weight is not None:
            return pairs.loss(pairs.mean(pairs.gap.clamp(max=self.max_weight) * each), margin)
        # Every gap is above 0, so the sum is 0 only without pairs.
        total = pairs.gap.sum() if len(pairs.gap) else pairs.gap.new_ones(())
        return pairs.loss((pairs.gap * each).sum() / total, margin)
