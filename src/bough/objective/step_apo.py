"""Step-APO: DPO on steps, with a margin that grows with the gap of their values."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import PATHS, REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import Above, AtLeast, piece


@piece
class StepApo:
    """Step-APO (CPL, arXiv 2409.08642): responses to one context, margin by their gap; needs trees that fork.

    With margin as in `Dpo`, and Q the advantages of winner and loser, whose difference is that of their action values:

        loss = mean over pairs of - log sigmoid(beta * margin - alpha * (Q_winner - Q_loser))

    At margin 0, the pair with the wider gap has the larger gradient:

        Q of the pair     loss     gradient by margin
        0.6, -0.4         1.3133   -0.2193
        0.1, -0.1         0.7981   -0.1650

    Values are action values in [-1, 1], each positive one paired with each negative one. Advantages divided by
    a standard deviation have a wider range: use a rule without it, or a smaller alpha. The released code scales the
    values of final answers by .3, which forks here do not distinguish.

    Metrics: as of `Dpo`; the margin is beta * margin.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        alpha: Required beta * margin, in nats per unit of advantage, >= 0; 0 is DPO.
        pairs: Selects the preference pairs.
    """

    beta: Annotated[float, Above(0)] = 0.3
    alpha: Annotated[float, AtLeast(0)] = 1.0
    pairs: Pairs = Pairs(unit="turn", choice="opposite")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and the reference's log-probabilities."""
        return frozenset({PATHS, REFERENCE})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "StepApo")
        margin = self.beta * pairs.margin(columns)
        return pairs.loss(pairs.mean(-torch.nn.functional.logsigmoid(margin - self.alpha * pairs.gap)), margin)
