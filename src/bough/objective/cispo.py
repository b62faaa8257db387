"""CISPO: a bounded importance weight on the policy gradient."""

import math
from typing import Annotated

from bough.lazy import torch
from bough.needs import Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import AtLeast, Between, piece


@piece
class Cispo:
    """CISPO (MiniMax-M1, arXiv 2506.13585): REINFORCE with a bounded ratio as its weight; every token has a gradient.

    With r the ratio of a token, and sg the stop-gradient:

        loss = - sum loss_weight * sg(clip(r, 1 - low, 1 + high)) * A * log p

    PPO's bounds remove the gradient of the tokens beyond them, often rare tokens that change the response; here they
    bound its size. At ratios 1.4, 1.1, .6 with high = .28, an advantage of 1 weighs 1.28, 1.1, .6.

    The paper has no lower bound in use (low = None); verl clips on both sides, which is low = 0.2. The paper tunes
    `high` without giving the value; .28 is DAPO's.

    The paper's unified form (section 3.1) multiplies each term by a mask, which restores PPO's trust region:

        mask = 0 where A > 0 and r > 1 + mask_high, or A < 0 and r < 1 - mask_low; else 1

    With mask_high = .28, an advantage of 1 weighs 0, 1.1, .6 at the ratios above. CISPO itself has no mask, the
    default; Trinity's release (`enable_mask_clip`) masks the same tokens.

    Metrics, weighted by `metric_weight`: `ratio`; `weight_clipped`, where the weight is not the ratio; `masked`, where
    the mask is 0.

    Attributes:
        low: Largest distance of the weight below 1, in [0, 1); None for no bound.
        high: Largest distance above 1, >= 0.
        mask_low: A token with a negative advantage gets no gradient below 1 - mask_low; in [0, 1), None for no mask.
        mask_high: A token with a positive advantage gets no gradient above 1 + mask_high; >= 0, None for no mask.
    """

    low: Annotated[float | None, Between(0, 1, below=True)] = None
    high: Annotated[float, AtLeast(0)] = 0.28
    mask_low: Annotated[float | None, Between(0, 1, below=True)] = None
    mask_high: Annotated[float | None, AtLeast(0)] = None

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio = (columns.logprob - columns.rollout_logprob).detach()
        bottom = None if self.low is None else math.log1p(-self.low)
        bounded = log_ratio.clamp(min=bottom, max=math.log1p(self.high))
        above = log_ratio > (math.inf if self.mask_high is None else math.log1p(self.mask_high))
        below = log_ratio < (-math.inf if self.mask_low is None else math.log1p(-self.mask_low))
        advantage = columns.positive.masked_fill(above, 0.0) + columns.negative.masked_fill(below, 0.0)
        value = -(columns.loss_weight * advantage * bounded.exp() * columns.logprob).sum()
        with torch.no_grad():
            metrics = {
                "ratio": (columns.metric_weight * log_ratio.exp()).sum(),
                "weight_clipped": columns.metric_weight[bounded != log_ratio].sum(),
                "masked": columns.metric_weight[
                    (above & (columns.positive > 0)) | (below & (columns.negative < 0))
                ].sum(),
            }
        return Loss(value=value, metrics=metrics)
