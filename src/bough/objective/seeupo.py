"""SeeUPO: turns are updated one after the other, the last first."""

from dataclasses import dataclass, field, replace

from jaxtyping import Float, Int

from bough.lazy import Tensor, torch
from bough.needs import PATHS, TURN_BY_TURN, Need
from bough.objective.inputs import LossInputs, PathIds
from bough.objective.objective import Loss
from bough.objective.ppo import PpoClip
from bough.objective.spans import path_ids_of, span_sums

LARGEST = 20.0
"""Maximum of |log M|, so that M is finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeUpo:
    """SeeUPO (arXiv 2602.06554): trains one turn at a time, the last first, given the later turns' updates.

    Experimental: known from the abstract and from re-implementations; the authors' code was not found. The turns of a
    path are taken for agents that act one after the other, whose policies are updated in the reverse order. An update
    has an optimizer step for each turn, t = T ... 1, and the loss of turn t is

        M_t = A * product over the later turns k > t of p(turn k) / b(turn k)            held fixed
        loss_t = - sum over its tokens of loss_weight * min(r_t * M_t, clip(r_t, 1 - low, 1 + high) * M_t)

    with A the path's advantage, p the policy after the steps of the later turns, b the rollout policy, and r_t the
    ratio of turn t, clipped as by `PpoClip(ratio="turn")`. So the step of a turn weighs a path by how much likelier the
    later turns' updates made its continuation. Two turns with log ratios .3 .1 | .6 and A 1:

        step for turn 2    M = 1            step for turn 1    M = exp(.6) = 1.8221

    The product of a turn's ratios in M is exact; r_t is the geometric mean over its tokens, as in GSPO, since no source
    says which the paper clips. M is computed with the present weights: the turns share them, so that later steps move
    earlier ratios too. Re-implementations keep the ratios from right after each turn's step. In the paper agents have
    weights of their own in the proof, and share them in the experiments. An update costs as many passes over the
    batch as the longest path has turns.

    Called without a turn number (a dry pass), the loss is of all turns in one step.

    Metrics: those of `PpoClip`, over all turns; `later_ratio`, the mean of M_t / A over the trained tokens.

    Attributes:
        clip: The clipped loss of a turn; `ratio` must be "turn", without `product`.
    """

    clip: PpoClip = field(default_factory=lambda: PpoClip(ratio="turn"))

    def __post_init__(self) -> None:
        if self.clip.ratio != "turn" or self.clip.product:
            raise ValueError(
                f"SeeUpo.clip: got ratio={self.clip.ratio!r}, product={self.clip.product}; need ratio='turn' with the "
                "geometric mean, product=False"
            )

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, and steps for one turn at a time."""
        return frozenset({PATHS, TURN_BY_TURN})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss of the turns with the number `turn_number`."""
        ids = path_ids_of(columns, "SeeUpo")
        number, later = later_log_ratio(columns.logprob.detach() - columns.rollout_logprob, ids)
        weight = later.clamp(min=-LARGEST, max=LARGEST).exp().to(columns.logprob.dtype)[ids.turn]
        chosen = torch.ones_like(weight)
        if columns.turn_number is not None:
            chosen = (number == columns.turn_number).to(weight.dtype)[ids.turn]
        loss = self.clip(
            replace(columns, positive=chosen * weight * columns.positive, negative=chosen * weight * columns.negative)
        )
        share = columns.loss_weight * chosen
        mean = (share * weight).sum() / share.sum().clamp(min=torch.finfo(share.dtype).tiny)
        return replace(loss, metrics={**loss.metrics, "later_ratio": mean})


def later_log_ratio(log_ratio: Float[Tensor, " M"], path_ids: PathIds) -> tuple[Int[Tensor, " K"], Float[Tensor, " K"]]:
    """[K] each: the number of every turn on its path, and the sum of `log_ratio` over the later turns of the path.

    Two turns of a path with .3 .1 | .6 have the numbers 0 1 and the sums .6 0.
    """
    turns = len(path_ids.path_of_turn)
    total = span_sums(log_ratio.double(), path_ids.turn, turns).cumsum(0)
    length = path_ids.path_of_turn.bincount(minlength=len(path_ids.task))
    end = length.cumsum(0)[path_ids.path_of_turn]
    number = torch.arange(turns, device=end.device) - (end - length[path_ids.path_of_turn])
    return number, total[end - 1] - total
