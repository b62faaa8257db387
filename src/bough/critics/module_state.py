"""The weights of a small network and its optimizer's moments, as arrays of a checkpoint."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from bough.policy.replica import check


def weights_of(module: nn.Module, name: str) -> dict[str, NDArray[Any]]:
    """The weights, under names that begin with `name`."""
    return {f"{name}/{key}": weight.detach().cpu().numpy().copy() for key, weight in module.named_parameters()}


@torch.no_grad()
def load_weights(module: nn.Module, name: str, state: Mapping[str, NDArray[Any]]) -> None:
    """Restore the result of `weights_of`, bit for bit; `state` may have other entries.

    Raises:
        ValueError: when names or shapes differ from the module's; names the first. No weight is copied then.
    """
    own = {f"{name}/{key}": weight for key, weight in module.named_parameters()}
    stored = {key: torch.as_tensor(value) for key, value in state.items() if key.startswith(f"{name}/")}
    check(stored, own, "load_weights")
    for key, weight in own.items():
        weight.copy_(stored[key])


def entries_below(state: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The entries of a state whose names begin with a prefix, by their names without it."""
    return {name.removeprefix(prefix): each for name, each in state.items() if name.startswith(prefix)}


def moments_of(module: nn.Module, adam: torch.optim.Adam) -> dict[str, NDArray[Any]]:
    """Adam's moments of a network's weights, under names that begin with "adam"."""
    return {
        f"adam/{name}/{key}": moment.detach().cpu().numpy().copy()
        for name, weight in module.named_parameters()
        for key, moment in adam.state[weight].items()
    }


def load_moments(module: nn.Module, adam: torch.optim.Adam, state: Mapping[str, NDArray[Any]]) -> None:
    """Restore the result of `moments_of`, bit for bit."""
    adam.state.clear()
    named = dict(module.named_parameters())
    for key in (key for key in state if key.startswith("adam/")):
        name, _, moment = key.removeprefix("adam/").rpartition("/")
        value = torch.as_tensor(state[key].copy())
        # Adam counts its steps on the CPU.
        adam.state[named[name]][moment] = value if moment == "step" else value.to(named[name].device)
