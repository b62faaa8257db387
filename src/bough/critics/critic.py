"""The value heads of a run."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bough.critics.valuehead import ValueHead
from bough.policy.replica import check


class Critic(nn.Module):
    """Value heads with their weights. Built by `ValueHead.build`."""

    def __init__(self, settings: ValueHead, width: int) -> None:
        super().__init__()
        self.settings = settings
        self.linear = nn.Linear(width, len(settings.heads))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Float[Tensor, "M W"]) -> dict[str, Float[Tensor, " M"]]:
        """Each head's values of M hidden states, float32 (float64 if the heads are)."""
        hidden = hidden.detach() if self.settings.detach else hidden
        return dict(zip(self.settings.heads, self.linear(hidden.to(self.linear.weight.dtype)).unbind(-1), strict=True))

    def shadow(self) -> "Critic":
        """Value heads with the same weights and separate gradients."""
        memo: dict[int, Any] = {id(weight): nn.Parameter(weight.detach()) for weight in self.parameters()}
        return copy.deepcopy(self, memo)

    def state(self) -> dict[str, Tensor]:
        """A copy of the weights, on the CPU."""
        return {name: weight.detach().to("cpu", copy=True) for name, weight in self.named_parameters()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned, bit for bit.

        Raises:
            ValueError: when names or shapes differ from the heads'; names the first. No weight is copied then.
        """
        own = dict(self.named_parameters())
        check(state, own, "Critic.load_state")
        for name, weight in own.items():
            weight.copy_(state[name])
