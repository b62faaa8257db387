"""PPO's clipped policy loss."""

import math
from typing import Annotated, Literal

from bough.lazy import torch
from bough.needs import KL_IN_REWARD, PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.spans import TOKEN_RATIO, Ratio, span_log_ratio
from bough.piece import Above, AtLeast, Between, piece


@piece
class PpoClip:
    """Proximal policy optimization (arXiv 1707.06347), separate bounds (DAPO, 2503.14476), dual clip (1912.09729).

    With r the ratio of the trained policy's probability of a token to the rollout policy's:

        loss = - sum loss_weight * (positive * min(r, 1 + high) + negative * min(max(r, 1 - low), dual))

    With positive and negative advantages apart, this is the mean over paths of the ordinary loss even where
    advantages of paths through a token differ; one summed advantage with one clip would be another loss.

    The ratio may be that of the token's whole turn (ST-PPO, 2511.20718; Turn-PPO, 2512.17008) or path (GSPO,
    2507.18071): exp of the mean log ratio over its trained tokens, which is clipped for all of them together; each
    token's gradient goes through its own log-probability. With `product` it is exp of the sum of the log ratios:
    the exact probability ratio of the whole turn or path, whose variance grows with length. Such a loss needs
    the path view. `gspo()` and `loop_clip()` are named settings.

    Metrics, all weighted by `metric_weight`: `ratio`; `clip_high` and `clip_low`, where a positive, or a negative,
    advantage is clipped (`clip_dual` likewise); `kl_behaviour`, the k3 estimate of the divergence from the rollout
    policy.

    Attributes:
        low: Distance of the lower bound below 1 for negative advantages, in [0, 1).
        high: Distance of the upper bound above 1 for positive advantages, >= 0.
        dual: Upper bound of the ratio for negative advantages, > 1 (3 in the paper); None for no such bound.
        ratio: The unit of the ratio.
        product: Whether the ratio of a turn or path is the product of its tokens' ratios, not their geometric mean.
    """

    low: Annotated[float, Between(0, 1, "a number from 0 to below 1", below=True)] = 0.2
    high: Annotated[float, AtLeast(0, "0 or more")] = 0.2
    dual: Annotated[float | None, Above(1)] = None
    ratio: Ratio = "token"
    product: bool = False

    def __post_init__(self) -> None:
        if self.product and self.ratio == "token":
            raise ValueError("PpoClip.product: got it with ratio='token'; need ratio='turn' or 'sequence'")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, when the ratio is of more than one token."""
        return frozenset() if self.ratio == "token" else frozenset({PATHS})

    @property
    def conflicts(self) -> frozenset[Need]:
        """A ratio over a turn or a path takes one advantage for all its tokens."""
        return frozenset() if self.ratio == "token" else frozenset({KL_IN_REWARD.or_else(TOKEN_RATIO)})

    @property
    def log_bounds(self) -> tuple[float, float, float | None]:
        """Logs of the bounds: the lower for negative advantages, the upper for positive, the dual for negative ones."""
        return math.log1p(-self.low), math.log1p(self.high), None if self.dual is None else math.log(self.dual)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio = span_log_ratio(columns, self.ratio, "PpoClip", product=self.product)
        gains, loses = columns.positive > 0, columns.negative < 0
        # Bounds apply before the exponential, and only where they matter: a ratio too large for a float would turn a
        # zero gradient into nan.
        bottom, top, ceiling = self.log_bounds
        rises = log_ratio.clamp(max=top).exp()
        falls = log_ratio.where(loses, 0.0).clamp(min=bottom, max=ceiling).exp()
        value = -(columns.loss_weight * (columns.positive * rises + columns.negative * falls)).sum()
        with torch.no_grad():
            ratio = log_ratio.exp()
            metrics = {
                "ratio": (columns.metric_weight * ratio).sum(),
                "clip_high": columns.metric_weight[gains & (log_ratio > top)].sum(),
                "clip_low": columns.metric_weight[loses & (log_ratio < bottom)].sum(),
                "kl_behaviour": (columns.metric_weight * (ratio - 1.0 - log_ratio)).sum(),
            }
            if ceiling is not None:
                metrics["clip_dual"] = columns.metric_weight[loses & (log_ratio > ceiling)].sum()
        return Loss(value=value, metrics=metrics)


def loop_clip(epsilon: float = 0.1, ratio: Literal["token", "sequence"] = "token") -> PpoClip:
    """LOOP's range (arXiv 2502.01600): ratios from 1 / (1 + epsilon) to 1 + epsilon, symmetric in the logarithm.

    LOOP clips at .1, on top of a leave-one-out baseline, with no divergence in the loss. In `PpoClip` the lower bound
    is 1 - low, hence low = epsilon / (1 + epsilon). At epsilon .1, ratios .8, 1, 1.05, 1.3 cost -.8, -1, -1.05, -1.1
    with an advantage of 1, and .9091, 1, 1.05, 1.3 with -1.

    With ratio="sequence" one ratio is clipped for a whole path, the product over its tokens (`pg_per_trajectory` of
    apple/ml-loop): it needs the path view and Normalizer(by="paths"). Three tokens with ratios 1.4, 1.1 and .6 have
    .924.
    """
    return PpoClip(low=epsilon / (1 + epsilon), high=epsilon, ratio=ratio, product=ratio != "token")
