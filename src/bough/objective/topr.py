"""TOPR: full weight for positive, truncated importance weight for negative advantages."""

from bough.lazy import torch
from bough.needs import KL_IN_REWARD, PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.spans import TOKEN_RATIO, Ratio, span_log_ratio
from bough.piece import piece


@piece
class Topr:
    """TOPR (arXiv 2503.14286): weight 1 for positive, min(ratio, 1) for negative advantages; stable off-policy.

    With r the ratio and sg the stop-gradient:

        loss = - sum loss_weight * (positive + sg(min(r, 1)) * negative) * log p

    Good samples are imitated, however unlikely they are now. Bad samples are pushed away only in proportion to their
    current probability, so the loss of an unlikely mistake stays bounded. With ratios 1.8 and .8 a token
    of negative advantage weighs 1 and .8.

    The paper weighs whole paths by the product of their ratios, with rewards of 1 and -1 in place of advantages;
    Trinity's release has the ratio of each token (ratio="token"). The chunks of IPA (2512.24873) are turns, weighed by
    the geometric mean: ratio="turn", mean=True.

    Advantages above `threshold` have weight 1. It is 0 in the paper and a setting in Trinity's release
    (`advantage_threshold`). At a ratio of .8, advantages of .5, .2 and -.1 have the weights

        threshold 0        1    1    .8
        threshold .3       1    .8   .8
        threshold -.2      1    1    1

    Metrics, weighted by `metric_weight`: `weight_lose`, the mean weight of negative advantages, over all tokens.

    Attributes:
        ratio: The unit of the ratio.
        mean: Whether the ratio of a turn or path is the geometric mean of its tokens' ratios, not their product.
        threshold: Advantages up to this have min(ratio, 1) as weight; larger ones have weight 1.
    """

    ratio: Ratio = "sequence"
    mean: bool = False
    threshold: float = 0.0

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, when the ratio is of more than one token, or a threshold compares the advantage of each path."""
        return frozenset() if self.ratio == "token" and self.threshold == 0 else frozenset({PATHS})

    @property
    def conflicts(self) -> frozenset[Need]:
        """A ratio over a turn or a path takes one advantage for all its tokens."""
        return frozenset() if self.ratio == "token" else frozenset({KL_IN_REWARD.or_else(TOKEN_RATIO)})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio = span_log_ratio(columns, self.ratio, "Topr", product=not self.mean).detach()
        weight = log_ratio.clamp(max=0.0).exp()
        positive, negative = (
            side * weight.masked_fill(side > self.threshold, 1.0) for side in (columns.positive, columns.negative)
        )
        value = -(columns.loss_weight * (positive + negative) * columns.logprob).sum()
        with torch.no_grad():
            weight = weight.masked_fill(columns.negative > self.threshold, 1.0)
            metrics = {"weight_lose": (columns.metric_weight * weight)[columns.negative < 0].sum()}
        return Loss(value=value, metrics=metrics)
