"""AEPO: a clipped loss that keeps the gradient of high-entropy tokens."""

import math
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float

from bough.lazy import Tensor, torch
from bough.objective import Loss, LossInputs, Need
from bough.objective.spans import path_ids_of
from bough.tree.needs import ENTROPY, PATHS

_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Aepo:
    """AEPO (arXiv 2510.14545): undecided tokens weigh more, and clipped ones of them keep a gradient.

    With z the z-score of a token's entropy among all tokens of the optimizer step (standard deviation with ddof 1), and
    r its ratio, the advantage is A * (1 + weight * z), and PPO's clipped loss is taken of it, but for the tokens that
    gain and lie beyond 1 + high: those with z > 0 have

        (1 + high) * r / sg(r)        in place of        1 + high

    which has the same value, and the slope 1 + high where clipping leaves none. What loses is clipped as ever.

    Ratios 1.4, 1.1, .6, 1.4 with entropies 2, .2, .2, .2 and advantages of 1 have z = 1.5, -.5, -.5, -.5 and weigh
    1.3, .9, .9, .9; with high = .28 and means over the four the loss is -1.0865 and the gradients -.416, -.2475, -.135
    and 0: the first and the last are clipped, and the first, undecided, still learns.

    Implementations differ in whose gradient is kept. The paper says those of high entropy ("high"). A release in its
    authors' line keeps that of every clipped token that gains ("all"). A re-implementation (ARLArena) has it the wrong
    way round, "low": there the gradients are 0, -.2475, -.135, -.288. The entropy is that of the policy as it is, held
    fixed. The paper's other half, how many branches grow where, is a matter of the explorer.

    Metrics, weighted by `loss_weight`: `ratio`; `clip_high`, `clip_low` and `clip_dual`, where a gain or a loss is
    beyond its bound; `clip_kept`, where it keeps its gradient all the same; `entropy`, nats.

    Attributes:
        low: How far below 1 the ratio of a losing token still matters, in [0, 1).
        high: How far above 1 the ratio of a gaining token still matters, >= 0.
        dual: Ratio of a losing token above which it no longer matters, > 1; None for no such bound.
        weight: Of the entropy in the advantage, >= 0.
        keep: Which clipped tokens that gain keep a gradient: those of high entropy, of low entropy, all.
    """

    low: float = 0.2
    high: float = 0.28
    dual: float | None = 3.0
    weight: float = 0.2
    keep: Literal["high", "low", "all"] = "high"

    def __post_init__(self) -> None:
        if not 0 <= self.low < 1:
            raise ValueError(f"Aepo.low: got {self.low}; need a number from 0 to below 1")
        if not 0 <= self.high < math.inf:
            raise ValueError(f"Aepo.high: got {self.high}; need 0 or more")
        if self.dual is not None and not self.dual > 1:
            raise ValueError(f"Aepo.dual: got {self.dual}; need a number above 1, or None")
        if not 0 <= self.weight < math.inf:
            raise ValueError(f"Aepo.weight: got {self.weight}; need 0 or more")

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, and paths: the z-score is over all tokens of a step, whatever the micro-batches."""
        return frozenset({ENTROPY, PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """The loss.

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
            above, loss_weight = (advantage > 0) & (log_ratio > top), columns.loss_weight
            metrics = {
                "ratio": (loss_weight * log_ratio.exp()).sum(),
                "clip_high": loss_weight[above].sum(),
                "clip_low": loss_weight[loses & (log_ratio < bottom)].sum(),
                "clip_kept": loss_weight[above & keeps].sum(),
                "entropy": (loss_weight * columns.entropy).sum(),
            }
            if ceiling is not None:
                metrics["clip_dual"] = loss_weight[loses & (log_ratio > ceiling)].sum()
        return Loss(value=value, metrics=metrics)


def _standard(entropy: Float[Tensor, " M"]) -> Float[Tensor, " M"]:
    """[M]: z-scores; 0 where there is one token or none."""
    if len(entropy) < 2:
        return torch.zeros_like(entropy)
    return (entropy - entropy.mean()) / (entropy.std() + _EPSILON)
