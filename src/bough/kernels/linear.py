"""Matrix products without gradients by oneDNN, on processors where Intel's MKL is slower.

PyTorch multiplies float32 with MKL, which uses half of the AVX-512 registers on processors of other makers. oneDNN is
part of PyTorch too and uses all of them: about twice as fast there, and as fast as MKL on Intel's.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import pad

from bough.kernels.build import enabled

STEP, LARGE_STEP, LARGE, MANY = 16, 64, 512, 4096
"""Rows are padded to a multiple of STEP, from LARGE rows on of LARGE_STEP, and from MANY on not at all: oneDNN compiles
code for every number of rows, so padding keeps those numbers few."""

KNOWN, NEW = 2**22, 2**27
"""The fewest operations of a product for oneDNN: of a padded shape, whose code is likely cached, and of a new one."""


def linear(
    rows: Float[Tensor, "*n W"], matrix: Float[Tensor, "V W"], bias: Float[Tensor, " V"] | None = None
) -> Float[Tensor, "*n V"]:
    """`torch.nn.functional.linear`, by oneDNN where that is faster and no gradient is needed."""
    many, operations = rows.numel() // rows.shape[-1], 2 * rows.numel() * matrix.shape[0]
    if operations < (KNOWN if many < MANY else NEW) or not _suits(rows, matrix, bias) or not prefers_onednn():
        return functional.linear(rows, matrix, bias)
    flat = rows.reshape(-1, rows.shape[-1])
    lacking = -many % (STEP if many < LARGE else LARGE_STEP) if many < MANY else 0
    if lacking:
        flat = pad(flat, (0, 0, 0, lacking))
    operators: Any = torch.ops
    product: Tensor = operators.mkldnn._linear_pointwise(flat, matrix, bias, "none", [], "")
    return product[:many].view(*rows.shape[:-1], -1)


def use_fast_linear(model: nn.Module) -> None:
    """Have the plain `nn.Linear` layers of a model compute by `linear`."""
    if prefers_onednn():
        for module in model.modules():
            if type(module) is nn.Linear:
                vars(module)["forward"] = _Forward(module)


@cache
def prefers_onednn() -> bool:
    """Whether MKL uses half of the registers: on processors with AVX-512 of another maker than Intel."""
    cpuinfo = Path("/proc/cpuinfo")
    other = cpuinfo.exists() and "AuthenticAMD" in cpuinfo.read_text()
    avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return enabled() and other and avx512 and torch.backends.mkldnn.is_available()


class _Forward:
    """The forward pass of an `nn.Linear`. An object, because a copy of the model needs its own."""

    def __init__(self, module: nn.Linear) -> None:
        self._module = module

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> [..., V]."""
        return linear(hidden, self._module.weight, self._module.bias)


def _suits(*tensors: Tensor | None) -> bool:
    """Whether all are float32 on a CPU, and no gradient is needed."""
    some = [each for each in tensors if each is not None]
    if torch.is_grad_enabled() and any(each.requires_grad for each in some):
        return False
    return all(each.dtype == torch.float32 and each.device.type == "cpu" for each in some)
