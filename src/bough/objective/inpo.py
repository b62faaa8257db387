"""INPO: a squared loss on preference pairs, towards a Nash policy."""

from typing import Annotated

from bough.needs import OLD_LOGPROBS, PATHS, REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.piece import Above, AtLeast, piece


@piece
class Inpo:
    """INPO (arXiv 2407.00617): squared loss on pairs, near the reference and the last policy; needs path view.

    Experimental: the formula is that of a re-implementation, not the paper's own code. With each bracket a log ratio of
    winner to loser, under the policy p, the frozen reference and the policy before this update:

        h = log p[w / l] - (tau / eta) * log reference[w / l] - (1 - tau / eta) * log before[w / l]
        loss = mean over pairs of (h - 1 / (2 * eta))^2

    So the target is that the policy prefers the winner by 1 / (2 * eta) nats more than the mixture of the two. At p =
    before = reference h is 0, and the loss 25 with eta .1. `tau` is the strength of the reference in the game; 0 uses
    the last policy alone. The paper samples new pairs for each iteration and trains to convergence on them; here an
    iteration is a batch, and `Optimizer.epochs` is its number of epochs. The values of eta and tau are ours.

    Metrics: as of `Dpo`, where the margin is h.

    Attributes:
        eta: Step size of the game, > 0: a smaller value moves each iteration further.
        tau: Strength of the reference, from 0 to eta.
        pairs: Selects the preference pairs.
    """

    eta: Annotated[float, Above(0)] = 0.1
    tau: Annotated[float, AtLeast(0)] = 0.03
    pairs: Pairs = Pairs()

    def __post_init__(self) -> None:
        if self.tau > self.eta:
            raise ValueError(f"Inpo.tau: got {self.tau}; need at most eta={self.eta}")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, the reference's log-probabilities, and those before the update."""
        return frozenset({PATHS, REFERENCE, OLD_LOGPROBS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when `columns.reference` or `columns.old` is missing.
        """
        if columns.reference is None or columns.old is None:
            raise ValueError("Inpo: got columns without `reference` or `old`; need both log-probabilities")
        pairs = self.pairs(columns, "Inpo")
        held = self.tau / self.eta
        moved = columns.logprob - held * columns.reference - (1 - held) * columns.old
        margin = pairs.winner.sums(moved) - pairs.loser.sums(moved)
        return pairs.loss(pairs.mean((margin - 0.5 / self.eta).square()), margin)
