"""The KL divergence from a reference policy."""

from typing import Annotated, ClassVar, Literal

from bough.needs import REFERENCE, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import AtLeast, piece


@piece
class Kl:
    """KL penalty in the loss (as in GRPO, arXiv 2402.03300), estimated at the sampled tokens; needs a reference.

    With d = log policy - log reference at a token drawn from the policy (J. Schulman, "Approximating KL
    divergence", 2020):

        k1 = d                  k2 = d^2 / 2                  k3 = exp(-d) - 1 + d

    The value of k1 and k3 is unbiased for KL(policy || reference), k3 with less variance; k2 is biased. For a *loss*
    the gradient matters, which is that of the estimate with the token held fixed:

        k1: zero in the mean; it only adds noise
        k2: of KL(policy || reference), exactly
        k3: of KL(reference || policy), the other direction; the two agree near the reference

    All on-policy; no correction for tokens sampled by an older policy. GRPO (arXiv 2402.03300) uses k3.

    Metrics: `kl_reference`, the estimate weighted by `metric_weight`, before the coefficient.

    Attributes:
        coefficient: Factor on the penalty, >= 0.
        estimator: The estimate.
    """

    regularises: ClassVar[bool] = True

    coefficient: Annotated[float, AtLeast(0)] = 0.001
    estimator: Literal["k1", "k2", "k3"] = "k3"

    @property
    def needs(self) -> frozenset[Need]:
        """The reference's log-probabilities."""
        return frozenset({REFERENCE})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the penalty.

        Raises:
            ValueError: when `columns.reference` is missing.
        """
        if columns.reference is None:
            raise ValueError("Kl: got columns without `reference`; need log-probabilities of the reference policy")
        log_ratio = columns.logprob - columns.reference
        match self.estimator:
            case "k1":
                estimate = log_ratio
            case "k2":
                estimate = log_ratio.square() / 2
            case "k3":
                estimate = (-log_ratio).expm1() + log_ratio
        total = (columns.loss_weight * estimate).sum()
        return Loss(value=self.coefficient * total, metrics={"kl_reference": total.detach() * columns.metric_scale})
