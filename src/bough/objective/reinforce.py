"""The plain policy gradient."""

from dataclasses import dataclass

from bough.lazy import torch
from bough.needs import ON_POLICY, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss

REMEDY = "objective=Tis(objective=Reinforce()), or an objective with a ratio, such as PpoClip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce:
    """REINFORCE (Williams 1992): advantage times log-probability, no ratio, no clip; on-policy, one step a batch.

        loss = - sum loss_weight * (positive + negative) * log p

    Linear in the advantage, so advantages of paths that share a token may differ. Without a ratio there is no
    correction for tokens of an older policy: use
    `Optimizer(epochs=1, minibatches=1)`, whose only step has the sampling weights.

    Metrics, weighted by `metric_weight`: `kl_behaviour`, the k3 estimate of the divergence from the rollout policy,
    which is 0 on-policy.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """Samples of the current weights: no ratio corrects for older ones."""
        return frozenset({ON_POLICY.or_else(REMEDY)})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        value = -(columns.loss_weight * columns.advantage * columns.logprob).sum()
        with torch.no_grad():
            log_ratio = columns.logprob - columns.rollout_logprob
            metrics = {"kl_behaviour": (columns.metric_weight * (log_ratio.expm1() - log_ratio)).sum()}
        return Loss(value=value, metrics=metrics)
