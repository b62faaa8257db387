"""SAPO: a sigmoid of the ratio in place of a clip."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import Above, piece

_FAR = 20.0
"""Log ratio from which a sigmoid is flat in double precision; beyond it a ratio may overflow a float."""


@piece
class Sapo:
    """SAPO (arXiv 2511.20347): a sigmoid of the ratio in place of PPO's bounds; steeper for negative advantages.

    With r the ratio of a token and T the temperature of its sign:

        loss = - sum loss_weight * f(r) * A        f(r) = 4 / T * sigmoid(T * (r - 1))

    At r = 1 the gradient of f is 1, as PPO's; it falls off smoothly on both sides: to .9242 at a ratio of 1.4 with
    T = 1, so the gradient of log p is .9242 * 1.4 * .8667 there.

    Metrics, weighted by `metric_weight`: `ratio`; `gate`, the gradient of f, 1 without damping.

    Attributes:
        gaining: Temperature for positive advantages, > 0.
        losing: Temperature for negative advantages, > 0; higher, since they raise all other tokens of the vocabulary.
    """

    gaining: Annotated[float, Above(0)] = 1.0
    losing: Annotated[float, Above(0)] = 1.05

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        ratio = (columns.logprob - columns.rollout_logprob).clamp(max=_FAR).exp()
        up, down = (torch.sigmoid(heat * (ratio - 1)) for heat in (self.gaining, self.losing))
        gated = columns.positive * up * (4 / self.gaining) + columns.negative * down * (4 / self.losing)
        with torch.no_grad():
            slope = torch.where(columns.advantage >= 0, 4 * up * (1 - up), 4 * down * (1 - down))
            metrics = {"ratio": (columns.metric_weight * ratio).sum(), "gate": (columns.metric_weight * slope).sum()}
        return Loss(value=-(columns.loss_weight * gated).sum(), metrics=metrics)
