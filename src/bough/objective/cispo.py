"""A bounded weight instead of a cut-off gradient."""

import math
from dataclasses import dataclass

from bough.lazy import torch
from bough.objective import Columns, Loss, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Cispo:
    """CISPO (MiniMax-M1, arXiv 2506.13585): REINFORCE with a bounded ratio as its weight; no token is cut off.

    With r the ratio of a token, and sg what is held fixed:

        loss = - sum share * sg(clip(r, 1 - low, 1 + high)) * A * log p

    PPO's bounds take the gradient from the tokens beyond them, often the rare ones that turn an answer round; here they
    bound its size. At ratios 1.4, 1.1, .6 with high = .28, an advantage of 1 weighs 1.28, 1.1, .6.

    The paper has no lower bound in use (low = None); verl clips on both sides, which is low = 0.2. The paper tunes
    `high` without saying to what; .28 is DAPO's.

    Metrics, weighted by `share`: `ratio`; `weight_clipped`, where the weight is not the ratio.

    Attributes:
        low: How far below 1 the weight may be, in [0, 1); None for no bound.
        high: How far above 1, >= 0.
    """

    low: float | None = None
    high: float = 0.28

    def __post_init__(self) -> None:
        if self.low is not None and not 0 <= self.low < 1:
            raise ValueError(f"Cispo.low: got {self.low}; need a number from 0 to below 1, or None")
        if not 0 <= self.high < math.inf:
            raise ValueError(f"Cispo.high: got {self.high}; need 0 or more")

    @property
    def needs(self) -> frozenset[Need]:
        """Nothing beyond what is always there."""
        return frozenset()

    def __call__(self, columns: Columns) -> Loss:
        """The loss."""
        log_ratio = (columns.logprob - columns.behaviour).detach()
        bottom = None if self.low is None else math.log1p(-self.low)
        bounded = log_ratio.clamp(min=bottom, max=math.log1p(self.high))
        value = -(columns.share * columns.advantage * bounded.exp() * columns.logprob).sum()
        with torch.no_grad():
            metrics = {
                "ratio": (columns.share * log_ratio.exp()).sum(),
                "weight_clipped": columns.share[bounded != log_ratio].sum(),
            }
        return Loss(value=value, metrics=metrics)
