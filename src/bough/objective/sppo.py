"""SPPO: a policy loss that masks tokens whose ratio is out of range."""

import math
from typing import Annotated

from bough.lazy import torch
from bough.needs import Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import Above, piece


@piece
class Sppo:
    """sPPO (Trinity-RFT, arXiv 2505.17826): the log ratio, dropped outside a range symmetric in the logarithm.

    With r the ratio of a token:

        loss = - sum loss_weight * A * log r        where 1 / (1 + epsilon) <= r <= 1 + epsilon, else nothing

    A token outside has neither value nor gradient, whatever the sign of its advantage. At epsilon .3 the range
    is .7692 to 1.3: of ratios 1.4, 1.1, .6 only the second has a gradient. The formula is that of the release; no
    paper was found that derives it.

    Metrics, weighted by `metric_weight`: `ratio`; `dropped`, the tokens outside.

    Attributes:
        epsilon: > 0.
    """

    epsilon: Annotated[float, Above(0)] = 0.3

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio = columns.logprob - columns.rollout_logprob
        inside = log_ratio.abs() <= math.log1p(self.epsilon)
        value = -(columns.loss_weight * columns.advantage * log_ratio.where(inside, 0.0)).sum()
        with torch.no_grad():
            metrics = {
                "ratio": (columns.metric_weight * log_ratio.exp()).sum(),
                "dropped": columns.metric_weight[~inside].sum(),
            }
        return Loss(value=value, metrics=metrics)
