"""The optimizers of a policy and its critic: steps, and state for a checkpoint."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bough.critics.critic import Critic
from bough.learner.harpg import Harpg
from bough.learner.igt import Igt
from bough.learner.optimizer import Optimizer
from bough.policy.shards import shard_like


class OptimizerSet:
    """Updates weights from their gradients."""

    def __init__(
        self, weights: Mapping[str, Tensor], settings: Optimizer, critic: Critic | None, *, seed: int = 0
    ) -> None:
        """Create the optimizers of the policy's weights and of a critic's."""
        self._named = dict(weights)
        matrices = [weight for weight in self._named.values() if weight.ndim >= 2]
        others = [weight for weight in self._named.values() if weight.ndim < 2]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": settings.weight_decay, "peak": settings.learning_rate},
            {"params": others, "weight_decay": 0.0, "peak": settings.learning_rate},
        ]
        self._optimizers: list[torch.optim.Optimizer] = []
        self._harpg: Harpg | None = None
        if settings.momentum != "adam":
            whole = {"params": [*self._named.values()], "peak": settings.learning_rate}
            rates = {"lr": settings.learning_rate, "weight": settings.igt_weight}
            self._harpg = Harpg([whole], **rates, seed=seed) if settings.momentum == "harpg" else None
            self._optimizers.append(self._harpg or Igt([whole], **rates))
            groups = []
        if critic is not None:
            heads = {f"critic.{name}": weight for name, weight in critic.named_parameters()}
            groups.append({"params": [*heads.values()], "weight_decay": 0.0, "peak": critic.settings.learning_rate})
            self._named |= heads
        if groups:
            adam: dict[str, Any] = {"lr": settings.learning_rate, "betas": settings.betas, "eps": settings.epsilon}
            self._optimizers.append(torch.optim.AdamW(groups, fused=True, **adam))
        self._owner: dict[Tensor, torch.optim.Optimizer] = {
            weight: each for each in self._optimizers for group in each.param_groups for weight in group["params"]
        }

    def zero_grad(self) -> None:
        """Reset all gradients."""
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)

    def along(self) -> Mapping[Tensor, Tensor] | None:
        """By weight, the direction of the Hessian-vector product for the next step; None if it needs a gradient."""
        return None if self._harpg is None else self._harpg.along()

    def step(self, scale: float) -> None:
        """One step, with `scale` of every learning rate."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = scale * group["peak"]
            optimizer.step()  # pyright: ignore[reportUnknownMemberType]

    def state(self) -> dict[str, Tensor]:
        """The moments by parameter name, for a checkpoint."""
        return {
            f"{name}/{key}": value
            for name, weight in self._named.items()
            for key, value in self._owner[weight].state[weight].items()
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`, bit for bit."""
        for optimizer in self._optimizers:
            optimizer.state.clear()
        for key, value in state.items():
            name, _, part = key.rpartition("/")
            weight = self._named[name]
            moment = value.to(weight.device, copy=True)
            self._owner[weight].state[weight][part] = (
                shard_like(moment, weight) if moment.shape == weight.shape else moment
            )
