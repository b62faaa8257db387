"""The divergence of the policy from a mixture of itself and of a better one."""

from dataclasses import dataclass
from typing import ClassVar

from bough.needs import Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureKl:
    """KL from the policy that `ConservativeMixture` aims at (Kakade and Langford, 2002), estimated at own samples.

    With pi the policy that sampled, q the one that is trained, r = q / pi at a token, and w = mixture / pi its weight,
    the rule's advantage:

        loss = sum of loss_weight * (-w log r + r - 1)

    The mean of -w log r over samples is the cross-entropy to the mixture, up to a constant. The mean of r - 1 is 0 for
    every q: it leaves the loss as it is, and takes away the noise of imitating own samples. The gradient of a token at
    the start is (1 - w) times that of log q, so it is 0 where no action is better than another. The minimum at a token
    is r = w. With w 1.9 and .7 and r 1: gradients of -.9 and .3 by log q; with r 1.9, of 0 and 1.2.

    Metrics: `mixture_kl`, the loss plus the weighted mean of w log w, so 0 at the mixture.
    """

    regularises: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio, weight = columns.logprob - columns.rollout_logprob, columns.positive
        total = (columns.loss_weight * (log_ratio.expm1() - weight * log_ratio)).sum()
        at_mixture = (columns.loss_weight * (weight.xlogy(weight) - weight + 1)).sum()
        return Loss(value=total, metrics={"mixture_kl": (total + at_mixture).detach() * columns.metric_scale})
