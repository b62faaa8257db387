"""The update: from a batch and an objective to new weights. Does not know which algorithm made the batch."""

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from bough.batch import Batch, chosen_logprobs, segments
from bough.objective import Columns, Objective, Share
from bough.policy.attention import Attend
from bough.policy.policy import Policy
from bough.train.run import Optimizer
from bough.train.schedule import scale


class Diverged(RuntimeError):
    """A loss or a gradient is not finite. The weights are as they were before the update."""


@runtime_checkable
class Forward(Protocol):
    """What log-probabilities are computed with: the policy, or a frozen replica of it."""

    def hidden(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Final hidden states [U, W] of tokens laid end to end."""
        ...

    def head(self) -> tuple[Tensor, Tensor | None]:
        """Weight [V, W] and bias [V] of the output layer."""
        ...


class Learner:
    """AdamW on a policy, in updates that may be split into micro-batches at will without changing the gradient."""

    def __init__(self, policy: Policy, settings: Optimizer, *, total_updates: int, temperature: float) -> None:
        self.policy = policy
        self.settings = settings
        self.updates = 0
        """Optimizer steps done."""
        self._total = total_updates
        self._temperature = temperature
        self._named = dict(policy.parameters())
        matrices = [weight for weight in self._named.values() if weight.ndim >= 2]
        others = [weight for weight in self._named.values() if weight.ndim < 2]
        self._adam = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": settings.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            betas=settings.betas,
            eps=settings.epsilon,
            foreach=True,
        )

    def learn(
        self, batch: Batch, objective: Objective, share: Share, *, reference: Forward | None, seed: int
    ) -> dict[str, float]:
        """Every epoch and part of a batch, one optimizer step each.

        Returns:
            Means over the steps of the losses and of the objective's metrics; `policy/gap`, the mean absolute
            difference in nats between the engine's and the learner's log-probabilities before the first step.

        Raises:
            Diverged: when a loss or a gradient is not finite.
        """
        totals: dict[str, float] = {}
        steps = 0
        for epoch in range(self.settings.epochs):
            for part in batch.parts(self.settings.parts, seed + epoch):
                metrics = self.step(part.batch, objective, share, reference=reference)
                if steps == 0:
                    totals["policy/gap"] = metrics.pop("policy/gap")
                metrics.pop("policy/gap", None)
                steps += 1
                for name, value in metrics.items():
                    totals[name] = totals.get(name, 0.0) + value
        return {name: value if name == "policy/gap" else value / steps for name, value in totals.items()}

    def step(
        self, batch: Batch, objective: Objective, share: Share, *, reference: Forward | None = None
    ) -> dict[str, float]:
        """One optimizer step on a whole batch."""
        self._adam.zero_grad(set_to_none=True)
        metrics = self.backward(batch, objective, share, reference=reference)
        norm = float(torch.nn.utils.clip_grad_norm_(list(self._named.values()), self.settings.clip_norm))
        if not (math.isfinite(norm) and math.isfinite(metrics["loss/total"])):
            self._adam.zero_grad(set_to_none=True)
            raise Diverged(
                f"update {self.updates}: got a loss of {metrics['loss/total']} and a gradient norm of {norm}; need "
                "finite numbers. Lower optimizer.learning_rate or optimizer.clip_norm, or look for rewards out of range"
            )
        rate = self.settings.learning_rate * scale(
            self.settings.schedule, self.updates, self.settings.warmup_steps, self._total
        )
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()  # pyright: ignore[reportUnknownMemberType]
        self.updates += 1
        return {**metrics, "optimizer/gradient_norm": norm, "optimizer/learning_rate": rate}

    def backward(
        self, batch: Batch, objective: Objective, share: Share, *, reference: Forward | None = None
    ) -> dict[str, float]:
        """Add the gradient of the objective over a whole batch, micro-batch by micro-batch, to the parameters."""
        metrics: dict[str, float] = {}
        gap = 0.0
        weight = share(batch.paths, batch.inverse_length, batch.even)
        for part in batch.split(self.settings.micro_tokens):
            micro = part.batch
            logprob, entropy = self._logprobs(self.policy, micro, entropy="entropy" in objective.needs)
            gap += float((logprob.detach() - micro.behaviour).abs().sum())
            columns = Columns(
                logprob=logprob,
                entropy=entropy,
                behaviour=micro.behaviour,
                reference=self._reference(reference, micro) if "reference" in objective.needs else None,
                gain=micro.gain,
                lose=micro.lose,
                share=weight[part.trained],
            )
            loss = objective(columns)
            loss.value.backward()  # pyright: ignore[reportUnknownMemberType]
            named = {f"policy/{name}": value for name, value in loss.metrics.items()}
            for name, value in {"loss/total": loss.value.detach(), **named}.items():
                metrics[name] = metrics.get(name, 0.0) + float(value)
        return {**metrics, "policy/gap": gap / max(1, len(batch.at))}

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments by parameter name, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for name, weight in self._named.items():
            for key, value in self._adam.state[weight].items():
                found[f"{name}/{key}"] = value
        return found

    def load_state(self, state: Mapping[str, Tensor], updates: int) -> None:
        """Go on from `state` after `updates` optimizer steps."""
        self.updates = updates
        for key, value in state.items():
            name, _, moment = key.rpartition("/")
            self._adam.state[self._named[name]][moment] = value.clone()

    def _reference(self, reference: Forward | None, micro: Batch) -> Tensor:
        if reference is None:
            raise ValueError("got an objective that needs a reference policy, and no reference; give one to `learn`")
        with torch.no_grad():
            return self._logprobs(reference, micro, entropy=False)[0]

    def _logprobs(self, model: Forward, micro: Batch, *, entropy: bool) -> tuple[Tensor, Tensor | None]:
        hidden = model.hidden(micro.tokens, micro.position, segments(micro.row))
        weight, bias = model.head()
        return chosen_logprobs(
            hidden[micro.predictor], weight, micro.target, bias=bias, temperature=self._temperature, entropy=entropy
        )
