"""SimPO: a preference loss on mean log-probabilities, without a reference."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import Above, AtLeast, piece


@piece
class SimPo:
    """SimPO (arXiv 2405.14734): pairs by mean log-probability with a margin, no reference; needs path view.

    With m the mean log-probability of the tokens of a side:

        loss = mean over pairs of - log sigmoid(beta * (m_winner - m_loser) - gamma)

    At m = -.5 and -1 with the defaults: - log sigmoid(1.25 - .5) = .3869. The length of a side has no effect, and
    there is no pull to the initial policy.

    A side is the part of the path after the turns that both share. Defaults as in iTool (arXiv 2501.09766), whose
    pairs are parts of tool calls; the paper tries beta 2 to 2.5 and gamma .3 to 1.6.

    Metrics: as of `Dpo`, where the margin is beta * (m_winner - m_loser).

    Attributes:
        beta: Factor on the difference, > 0.
        gamma: Required margin, >= 0.
        pairs: Selects the preference pairs.
    """

    beta: Annotated[float, Above(0)] = 2.5
    gamma: Annotated[float, AtLeast(0)] = 0.5
    pairs: Pairs = Pairs()

    @property
    def needs(self) -> frozenset[Need]:
        """Paths."""
        return frozenset({PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "SimPo")
        margin = self.beta * (pairs.winner.means(columns.logprob) - pairs.loser.means(columns.logprob))
        return pairs.loss(pairs.mean(-torch.nn.functional.logsigmoid(margin - self.gamma)), margin)
