"""ORPO: imitation of the winner and an odds-ratio preference in one loss."""

from typing import Annotated, Literal

from jaxtyping import Float

from bough.lazy import Tensor, torch
from bough.needs import PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import AtLeast, piece

SURE = -1e-6
"""Upper bound of mean log-probabilities in the odds: a probability of one minus a millionth."""


@piece
class Orpo:
    """ORPO (arXiv 2403.07691): likelihood of the winner and odds against the loser, no reference; needs path view.

    With m the mean log-probability of the tokens of a side, and odds = exp(m) / (1 - exp(m)):

        loss = mean over pairs of - m_winner - beta * log sigmoid(log odds_winner - log odds_loser)

    At m = -.5 and -1 the log odds ratio is .9741, and the loss with beta .1 is .5 + .0320; at -1 and -.4 it is
    -1.2510, and the loss 1 + .1503.

    A side is the part of the path after the turns that both share. The first term is a mean over pairs, as in the paper
    (equation 6). With nll="tokens" it is one mean over the tokens of all winners, in which a long winner weighs more:
    winners of 2 and 1 tokens with means of -.5 and -1 give (.5 * 2 + 1) / 3 = .6667, and .75 by pairs. The released
    code and TRL's take the mean over tokens, including the prompt.

    Metrics: as of `Dpo`, where the margin is the log odds ratio; `winner_nll`, the first term.

    Attributes:
        beta: Weight of the preference (lambda in the paper), >= 0.
        nll: Whether the winners' negative log-likelihood is a mean over pairs (of token means) or over tokens.
        pairs: Selects the preference pairs.
    """

    beta: Annotated[float, AtLeast(0)] = 0.1
    nll: Literal["pairs", "tokens"] = "pairs"
    pairs: Pairs = Pairs()

    @property
    def needs(self) -> frozenset[Need]:
        """Paths."""
        return frozenset({PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "Orpo")
        winner, loser = pairs.winner.means(columns.logprob), pairs.loser.means(columns.logprob)
        margin = _log_odds(winner) - _log_odds(loser)
        size = torch.ones_like(winner) if self.nll == "pairs" else pairs.winner.sums(torch.ones_like(columns.logprob))
        nll = -winner * (size * len(size) / size.sum().clamp(min=1))
        loss = pairs.loss(pairs.mean(nll - self.beta * torch.nn.functional.logsigmoid(margin)), margin)
        return Loss(value=loss.value, metrics={**loss.metrics, "winner_nll": pairs.mean(nll.detach())})


def _log_odds(logprob: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """[N]: log of p / (1 - p)."""
    logprob = logprob.clamp(max=SURE)
    return logprob - (-logprob.expm1()).log()
