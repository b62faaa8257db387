"""Self-play by win rates: a squared loss towards the multiplicative-weights update."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import OLD_LOGPROBS, PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Unit, candidates_of
from bough.objective.spans import span_sums
from bough.piece import Above, AtLeast, piece


@piece
class SelfPlay:
    """Self-play preferences (SPPO, arXiv 2405.00675): log ratios follow win rates in the group; needs path view.

    The step of multiplicative weights in a game of the policy against itself. Of the n candidates of a group, P is the
    win rate of one, where a tie, as with itself, is half a win. With the log ratio to the policy before this
    update, summed over the tokens of the candidate:

        loss = mean over candidates of (log p - log before - eta * (P - 1/2))^2 / eta

        advantage    1      0     0     -1
        P            7/8    1/2   1/2   1/8          target at eta 8: 3 0 0 -3 nats

    The 1/2 stands for the logarithm of the normaliser, which is exact when wins and losses are balanced. Dividing by
    eta, unlike the paper, changes no minimum: at the start the gradient is 1 - 2 P whatever eta. With the paper's
    eta of 1000 targets are so far off that each iteration is a gradient step on win rates. Its released code has pairs
    with the win rates of a judge; here the advantages judge. Tied groups are excluded.

    `Sppo`, Trinity's "simple PPO", is another method with nearly the same name.

    Metrics: `units`, number of candidates in groups that do not tie; `selfplay_move`, their mean absolute log
    ratio, nats.

    Attributes:
        eta: Nats from always losing to always winning, > 0.
        unit: The candidates: paths of a task, or responses to exactly the same context.
        gap: Advantages with a difference up to this tie, >= 0.
    """

    eta: Annotated[float, Above(0)] = 1000.0
    unit: Unit = "path"
    gap: Annotated[float, AtLeast(0)] = 1e-6

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, and the log-probabilities before the update."""
        return frozenset({PATHS, OLD_LOGPROBS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when `columns.old` is missing.
        """
        if columns.old is None:
            raise ValueError("SelfPlay: got columns without `old`; need log-probabilities from before the update")
        candidates = candidates_of(columns, self.unit, "SelfPlay")
        one, other = candidates.rivals()
        ahead = candidates.score[one] - candidates.score[other]
        beats = (ahead > self.gap).double() - (ahead < -self.gap).double()
        count = len(candidates.group)
        # A win counts 1 and a tie 1/2, so P - 1/2 is half of wins minus losses, over the size of the group.
        size = span_sums(torch.ones_like(beats), one, count) + 1
        edge = span_sums(beats, one, count) / (2 * size)
        speaks = span_sums(beats.abs(), one, count) > 0
        speaks = torch.isin(candidates.group, candidates.group[speaks])
        moved = candidates.turn_sets().sums(columns.logprob - columns.old)[speaks]
        target = self.eta * edge[speaks].to(moved.dtype)
        whole = max(1, len(moved))
        return Loss(
            value=(moved - target).square().sum() / self.eta / whole,
            metrics={"units": moved.new_tensor(float(len(moved))), "selfplay_move": moved.detach().abs().sum() / whole},
        )
