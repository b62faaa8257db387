"""Backpropagates a loss, and sums metrics over chunks."""

from collections.abc import Mapping

from torch import Tensor

from bough.batch import Batch
from bough.learner.token_outputs import TokenOutputs
from bough.objective import LossInputs, Objective, compute_loss


def sum_of_gaps(outputs: TokenOutputs, batch: Batch, trained: Tensor) -> float:
    """Sum over the freshly sampled tokens among `trained` of |learner - engine| log-probability, nats."""
    apart = outputs.logprob.detach() - batch.rollout_logprob[trained]
    return float(apart[batch.on_policy[trained]].abs().sum())


def backpropagate(objective: Objective, columns: LossInputs) -> dict[str, float]:
    """Backpropagate the loss of some inputs; returns its metrics."""
    loss = compute_loss(objective, columns)
    loss.value.backward()  # pyright: ignore[reportUnknownMemberType]
    named = {f"policy/{name}": float(value) for name, value in loss.metrics.items()}
    return {"loss/total": float(loss.value.detach()), **named}


def add_metrics(total: dict[str, float], more: Mapping[str, float]) -> None:
    """Add metrics to a sum."""
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + value
