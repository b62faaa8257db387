"""DPO on steps whose pairs count more the further their values are apart."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import PATHS, REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import Above, AtLeast, piece


@piece
class MarginDpo:
    """Margin-aware DPO (LearNAT, arXiv 2504.02327): close pairs have a small gradient; needs trees that fork.

    With margin as in `Dpo`, and m the difference of the advantages of winner and loser, above 0 and at most 1:

        loss = mean over pairs of - log sigmoid(beta * margin - alpha * log m)

    At margin 0, the pair with the wider gap has the larger gradient; with alpha 1 it is -1 / (1 + 1/m):

        m       loss     gradient by beta * margin
        1       .6931    -.5
        .25     .2231    -.2

    `StepApo` demands more of wide pairs instead. A gap above 1 would demand more than DPO does; it counts as 1. The
    paper may also take the ratio of the two values for m.

    Metrics: as of `Dpo`; the margin is beta * margin.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        alpha: Weight of the gap, >= 0; 0 is DPO.
        pairs: Selects the preference pairs.
    """

    beta: Annotated[float, Above(0)] = 0.1
    alpha: Annotated[float, AtLeast(0)] = 1.0
    pairs: Pairs = Pairs(unit="turn", choice="all")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and the reference's log-probabilities."""
        return frozenset({PATHS, REFERENCE})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "MarginDpo")
        margin = self.beta * pairs.margin(columns)
        offset = self.alpha * pairs.gap.clamp(max=1.0).log()
        return pairs.loss(pairs.mean(-torch.nn.functional.logsigmoid(margin - offset)), margin)
