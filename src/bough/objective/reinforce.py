"""The plain policy gradient."""

from dataclasses import dataclass

from bough.lazy import torch
from bough.objective import Columns, Loss, Need
from bough.tree.needs import ON_POLICY

REMEDY = "objective=Tis(objective=Reinforce()), or an objective with a ratio, such as PpoClip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce:
    """REINFORCE (Williams 1992): advantage times log-probability, no ratio, no clip; on-policy, one step a batch.

        loss = - sum share * (gain + lose) * log p

    Linear in the advantage, so paths that share a token may disagree about it. With no ratio nothing corrects for
    tokens that an older policy sampled: take `Optimizer(epochs=1, parts=1)`, whose step sees the policy that sampled.

    Metrics, weighted by `share`: `kl_behaviour`, the k3 estimate of the divergence from the policy that sampled, which
    is 0 on-policy.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """Samples of the current weights: no ratio corrects for older ones."""
        return frozenset({ON_POLICY.or_else(REMEDY)})

    def __call__(self, columns: Columns) -> Loss:
        """The loss."""
        value = -(columns.share * columns.advantage * columns.logprob).sum()
        with torch.no_grad():
            log_ratio = columns.logprob - columns.behaviour
            metrics = {"kl_behaviour": (columns.share * (log_ratio.expm1() - log_ratio)).sum()}
        return Loss(value=value, metrics=metrics)
