"""Optimizers of a policy, and of a critic beside it: their steps, and what a checkpoint keeps of them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bough.policy.critic import Critic
from bough.train.eight_bit import adamw8, put_together, taken_apart
from bough.train.harpg import Harpg
from bough.train.igt import Igt
from bough.train.run import Optimizer


class Descent:
    """What changes weights by their gradients."""

    def __init__(self, weights: Mapping[str, Tensor], settings: Optimizer, critic: Critic | None) -> None:
        """For the policy's weights, and a critic's."""
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
            make = Igt if settings.momentum == "igt" else Harpg
            normalised = make([whole], lr=settings.learning_rate, weight=settings.igt_weight)
            self._harpg = normalised if isinstance(normalised, Harpg) else None
            self._optimizers.append(normalised)
            groups = []
        if critic is not None:
            heads = {f"critic.{name}": weight for name, weight in critic.named_parameters()}
            groups.append({"params": [*heads.values()], "weight_decay": 0.0, "peak": critic.settings.learning_rate})
            self._named |= heads
        if groups:
            make = adamw8 if settings.moment_bits == 8 else partial(torch.optim.AdamW, fused=True)
            made = make(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon)
            self._optimizers.append(made)
        self._owner: dict[Tensor, torch.optim.Optimizer] = {
            weight: each for each in self._optimizers for group in each.param_groups for weight in group["params"]
        }

    def forget(self) -> None:
        """Drop all gradients."""
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)

    def along(self) -> Mapping[Tensor, Tensor] | None:
        """By weight the direction along which the next step expects the change of the gradient; None for a gradient."""
        return None if self._harpg is None else self._harpg.along()

    def step(self, scale: float) -> None:
        """One step, with `scale` of every learning rate."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                rate, held = scale * group["peak"], group["lr"]
                group["lr"] = torch.full_like(held, rate) if isinstance(held, Tensor) else rate
            optimizer.step()  # pyright: ignore[reportUnknownMemberType]

    def state(self) -> dict[str, Tensor]:
        """The moments by parameter name, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for name, weight in self._named.items():
            for key, value in self._owner[weight].state[weight].items():
                found |= taken_apart(f"{name}/{key}", value)
        return found

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave, bit for bit."""
        parts: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, part = key.rpartition("/")
            parts.setdefault(name, {})[part] = value.to(self._named[name].device, copy=True)
        for name, own in parts.items():
            weight = self._named[name]
            self._owner[weight].state[weight].update(put_together(own, weight))
