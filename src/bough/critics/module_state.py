"""A small network and its optimizer's moments, as a part of a hook's state."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import torch
from numpy.typing import NDArray
from torch import nn

from bough.policy.replica import check

Module = TypeVar("Module", bound=nn.Module)


class Network(Generic[Module]):
    """A module in training; a `Part` of a state.

    Attributes:
        module: The module.
        adam: Its optimizer, whose moments are part of the state; None without.
    """

    def __init__(self, module: Module, adam: torch.optim.Adam | None = None) -> None:
        self.module, self.adam = module, adam

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The weights and the moments."""
        tensors = {f"weights/{name}": weight for name, weight in self.module.named_parameters()}
        if self.adam is not None:
            tensors |= {
                f"adam/{name}/{key}": moment
                for name, weight in self.module.named_parameters()
                for key, moment in self.adam.state[weight].items()
            }
        return {name: each.detach().cpu().numpy() for name, each in tensors.items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`, bit for bit.

        Raises:
            ValueError: when names or shapes differ from the module's; names the first. No weight is copied then.
        """
        own = {f"weights/{name}": weight for name, weight in self.module.named_parameters()}
        stored = {name: torch.as_tensor(value.copy()) for name, value in state.items()}
        moments = {name: stored.pop(name) for name in state if self.adam is not None and name.startswith("adam/")}
        check(stored, own, "Network.load_state")
        for name, weight in own.items():
            weight.copy_(stored[name])
        if self.adam is None:
            return
        self.adam.state.clear()
        named = dict(self.module.named_parameters())
        for key, value in moments.items():
            name, _, moment = key.removeprefix("adam/").rpartition("/")
            # Adam counts its steps on the CPU.
            self.adam.state[named[name]][moment] = value if moment == "step" else value.to(named[name].device)
