"""TPO: a preference loss on a ranked list of paths or answers."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import HIDDEN_STATES, PATHS, REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs, moved_from_reference
from bough.objective.step_weights import step_weighted_margin
from bough.piece import Above, piece


@piece
class Tpo:
    """TPO (arXiv 2410.12854): ranks all paths of a task, or all responses to one context, at once; needs path view.

    Experimental: the weights of pairs are LambdaRank's (as in LiPO, arXiv 2402.01878); the paper's could not be
    checked. With s = beta * (log p - log reference) summed over the tokens of a candidate, A its advantage, rank its
    rank in its group by s, 1 for the highest, and m_ij the margin s_i - s_j with adaptive steps:

        w_ij = |2^A_i - 2^A_j| * |1 / log(1 + rank_i) - 1 / log(1 + rank_j)|             held fixed
        loss = - mean over groups of sum over i, j with A_i > A_j of w_ij * log sigmoid(m_ij)

    The adaptive step reward weighs each step of m_ij by 1 - cos of its hidden state to that of the other candidate's
    step at the same place, so that steps that are alike have little weight (`step_weighted_margin`). Without it m_ij
    is s_i - s_j. The weight of a pair is the change in discounted gain when its ranks are exchanged: largest at the top
    of the list. Three responses with A 1, 0, -1 and s .5, .2, -.1, without adaptive steps:

        pair    2^A        ranks   w        log sigmoid   gradient by s_1, s_2, s_3
        1, 2    2 - 1      1, 2    0.5325   -0.5544       -.6100   .1864   .4236
        1, 3    2 - 1/2    1, 3    1.0820   -0.4375
        2, 3    1 - 1/2    2, 3    0.0944   -0.5544

    So descent raises candidates of higher advantage. The released loss does the reverse: it uses - log sigmoid(beta *
    L) of a loss L that is already one to minimise, has no weights of pairs, and counts each candidate against itself.
    It weighs the steps of all candidates by 1 + cos to the first one's, which favours the steps that are alike, has
    means over tokens and steps for sums, and a gradient through the weights.

    Metrics: as of `Dpo`, over all pairs; the margin is m_ij.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        pairs: Selects the preference pairs; the paper's list is "all".
        weights: Whether pairs weigh w_ij, or all the same.
        adaptive: Whether steps weigh by their difference from the other candidate's.
    """

    beta: Annotated[float, Above(0)] = 0.1
    pairs: Pairs = Pairs(choice="all")
    weights: bool = True
    adaptive: bool = True

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, the reference's log-probabilities, and hidden states for adaptive steps."""
        return frozenset({PATHS, REFERENCE, HIDDEN_STATES} if self.adaptive else {PATHS, REFERENCE})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "Tpo")
        moved = moved_from_reference(columns)
        margin = self.beta * (step_weighted_margin(pairs, columns, moved) if self.adaptive else pairs.margin(columns))
        candidates, won, lost = pairs.candidates, pairs.won, pairs.lost
        weight = torch.ones_like(margin)
        if self.weights:
            score = candidates.turn_sets().sums(moved.detach())
            discount = candidates.ranks(score).double().log1p().reciprocal()
            gain = candidates.score.exp2()
            weight = ((gain[won] - gain[lost]) * (discount[won] - discount[lost]).abs()).to(margin.dtype)
        groups = int((candidates.group[won].bincount() > 0).sum())
        return pairs.loss(-(weight * torch.nn.functional.logsigmoid(margin)).sum() / max(1, groups), margin)
