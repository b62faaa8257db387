"""AEPO: a clipped loss that keeps the gradient of high-entropy tokens."""

import math
from typing import Annotated, Literal

from jaxtyping import Float

from bough.lazy import Tensor, torch
from bough.needs import ENTROPY, PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.spans import path_ids_of
from bough.piece import Above, AtLeast, Between, piece

_EPSILON = 1e-6


@piece
class Aepo:
    """AEPO (arXiv 2510.14545): high-entropy tokens weigh more, and clipped ones of them keep a gradient.

    With z the z-score of a token's entropy among all tokens of the optimizer step (standard deviation with ddof 1), and
    r its ratio, the advantage is A * (1 + weight * z). The loss is PPO's clipped loss, except for tokens of positive
    advantage beyond 1 + high: those with z > 0 have

        (1 + high) * r / sg(r)        in place of        1 + high

    which has the same value, and the gradient 1 + high where clipping leaves none. Negative advantages are clipped as
    in PPO.

    Ratios 1.4, 1.1, .6, 1.4 with entropies 2, .2, .2, .2 and advantages of 1 have z = 1.5, -.5, -.5, -.5 and weigh
    1.3, .9, .9, .9; with high = .28 and means over the four the loss is -1.0865 and the gradients -.416, -.2475, -.135
    and 0: the first and the last are clipped, and the first, of high entropy, keeps a gradient.

    Implementations differ in the tokens that keep a gradient. The paper chooses those of high entropy ("high"). A
    release in its authors' line keeps that of every clipped token of positive advantage ("all"). A re-implementation
    (ARLArena) reverses it, "low": there the gradients are 0, -.2475, -.135, -.288. The entropy is the current
    policy's, held fixed. The paper's other half, the number and place of branches, is up to the explorer.

    Metrics, weighted by `metric_weight`: `ratio`; `clip_high`, `clip_low` and `clip_dual`, where the ratio is
    beyond the bound of its sign; `clip_kept`, where it keeps its gradient; `entropy`, nats.

    Attributes:
        low: Distance of the lower bound below 1 for negative advantages, in [0, 1).
        high: Distance of the upper bound above 1 for positive advantages, >= 0.
        dual: Upper bound of the ratio for negative advantages, > 1; None for no such bound.
        weight: Weight of the entropy in the advantage, >= 0.
        keep: The clipped tokens of positive advantage that keep a gradient: of high entropy, of low entropy, or all.
    """

    low: Annotated[float, Between(0, 1, "a number from 0 to below 1", below=True)] = 0.2
    high: Annotated[float, AtLeast(0, "0 or more")] = 0.28
    dual: Annotated[float | None, Above(1)] = 3.0
    weight: Annotated[float, AtLeast(0, "0 or more")] = 0.2
    keep: Literal["high", "low", "all"] = "high"

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, and paths: the z-score is over all tokens of a step, whatever the micro-batches."""
        return frozenset({ENTROPY, PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when `columns.entropy` is missing, or the path view.
        """
        if columns.entropy is None:
            raise ValueError("Aepo: got columns without `entropy`; need the entropy of each prediction")
        path_ids_of(columns, "Aepo")
        undecided = _standard(columns.entropy.detach())
        advantage = columns.advantage * (1 + self.weight * undecided)
        log_ratio = columns.logprob - columns.rollout_logprob
        loses = advantage < 0
        top, bottom = math.log1p(self.high), math.log1p(-self.low)
        ceiling = None if self.dual is None else math.log(self.dual)
        flat = log_ratio.clamp(max=top)
        sloped = log_ratio - log_ratio.detach() + flat.detach()
        keeps = {"high": undecided > 0, "low": undecided <= 0, "all": undecided == undecided}[self.keep]
        rises = torch.where(keeps, sloped, flat).exp()
        falls = log_ratio.where(loses, 0.0).clamp(min=bottom, max=ceiling).exp()
        value = -(columns.loss_weight * advantage * torch.where(loses, falls, rises)).sum()
        with torch.no_grad():
            above, weight = (advantage > 0) & (log_ratio > top), columns.metric_weight
            metrics = {
                "ratio": (weight * log_ratio.exp()).sum(),
                "clip_high": weight[above].sum(),
                "clip_low": weight[loses & (log_ratio < bottom)].sum(),
                "clip_kept": weight[above & keeps].sum(),
                "entropy": (weight * columns.entropy).sum(),
            }
            if ceiling is not None:
                metrics["clip_dual"] = weight[loses & (log_ratio > ceiling)].sum()
        return Loss(value=value, metrics=metrics)


def _standard(entropy: Float[Tensor, " M"]) -> Float[Tensor, " M"]:
    """[M]: z-scores; 0 where there is one token or none."""
    if len(entropy) < 2:
        return torch.zeros_like(entropy)
    return (entropy - entropy.mean()) / (entropy.std() + _EPSILON)
