"""Pieces of a transformers model in machine code of our own, on a CPU, where that says the same."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

ROUNDING = 1e-5
"""What differs by more from what the code computes is something else."""

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Where a module keeps who wants to be told when it is called."""


class Fused(ABC):
    """The `forward` of a module: the code for float32 on a CPU, and the module's own for everything else."""

    def __init__(self, module: nn.Module) -> None:
        """Get ready to take the place of the module's forward pass."""
        self._module = module

    @classmethod
    @abstractmethod
    def of(cls, module: nn.Module) -> "Fused | None":
        """The same in code, or None for a module that computes something else: told by what it says of some numbers."""

    @abstractmethod
    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the module says of the same."""


def fits(*tensors: Tensor) -> bool:
    """Whether the code can read them, and they are no stand-ins, as where a compiler looks on."""
    for each in tensors:
        if type(each) is not Tensor or each.dtype != torch.float32 or each.device.type != "cpu":
            return False
    return True


def unheard(*modules: nn.Module) -> bool:
    """Whether nobody is to be told when they are called."""
    for each in modules:
        kept = vars(each)
        for name in HOOKS:
            if kept[name]:
                return False
    return True


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two results are of the same computation."""
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), rtol=ROUNDING, atol=ROUNDING)


def learns(*tensors: Tensor | None) -> bool:
    """Whether a gradient may be asked for."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def bare(module: nn.Module, **stand_ins: nn.Module) -> nn.Module:
    """A module with others in the place of some of its own."""
    again = copy.copy(module)
    vars(again)["_modules"] = {**vars(module)["_modules"], **stand_ins}
    return again


@torch.no_grad()
def fuse(model: nn.Module, *kinds: type[Fused]) -> None:
    """Have modules of a model on a CPU computed by the code of these kinds, where that says the same."""
    if any(weight.device.type != "cpu" for weight in model.parameters()):
        return
    for module in model.modules():
        if "forward" in vars(module):
            continue
        fused = next(filter(None, (kind.of(module) for kind in kinds)), None)
        if fused is not None:
            vars(module)["forward"] = fused


def part(model: nn.Module) -> None:
    """Have them computed as the model says, by operations that a compiler may join with others."""
    for module in model.modules():
        if isinstance(vars(module).get("forward"), Fused):
            del vars(module)["forward"]
