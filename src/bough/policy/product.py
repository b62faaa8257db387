"""Products of rows with matrices of a model, and their gradients, on a CPU.

PyTorch multiplies float32 with Intel's MKL, which on processors of others computes with half of what the registers of
AVX-512 hold. oneDNN, which is part of PyTorch as well, uses all of it: twice as fast there, and the same on Intel's.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from bough.policy.fused import Fused, fits, learns, unheard

STEP, LARGE_STEP, LARGE, MANY = 16, 64, 512, 4096
"""Rows are filled up to a multiple of STEP, from LARGE on of LARGE_STEP, so that there are not many numbers of them;
from MANY on they are not."""

KNOWN, NEW = 2**22, 2**27
"""Operations of a product from which on oneDNN is faster: where it is likely to have the code, and where it has to make
it, as for every shape that it meets, which takes as long as such a product."""


class Matrix(Fused):
    """A product with a matrix, and nothing besides: for who learns as in PyTorch, for others by `multiply`."""

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same by oneDNN, or None where MKL is as fast."""
        return cls(module) if type(module) is nn.Linear and halved() else None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> [..., V]."""
        module: Any = self._module
        weight, bias = module.weight, module.bias
        small = 2 * hidden.numel() * weight.shape[0] < KNOWN
        if small or type(weight) is not nn.Parameter or weight.dtype != torch.float32 or not fits(hidden):
            return linear(hidden, weight, bias)
        if learns(hidden, weight, bias):
            return linear(hidden, weight, bias)
        return multiply(hidden.reshape(-1, hidden.shape[-1]), weight, bias).view(*hidden.shape[:-1], -1)


class Opaque(Fused):
    """A product that compiled code, whose own are by MKL, calls as an operation that it does not look into."""

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same by oneDNN, or None where MKL is as fast."""
        return cls(module) if halved() and products(module) else None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> [..., V]."""
        module: Any = self._module
        made = _multiply(hidden.reshape(-1, hidden.shape[-1]), module.weight, module.bias)
        return made.view(*hidden.shape[:-1], -1)


def multiply(
    rows: Float[Tensor, "n W"], matrix: Float[Tensor, "V W"], bias: Float[Tensor, " V"] | None = None
) -> Float[Tensor, "n V"]:
    """Float32 rows times a matrix, for who asks for no gradients: rows may be copied into more of them."""
    many, operations = rows.shape[0], 2 * rows.numel() * matrix.shape[0]
    if operations < (KNOWN if many < MANY else NEW) or not halved():
        return linear(rows, matrix, bias)
    lacking = -many % (STEP if many < LARGE else LARGE_STEP) if many < MANY else 0
    if lacking:
        rows = pad(rows, (0, 0, 0, lacking))
    named: Any = torch.ops
    return named.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], "")[:many]


@torch.library.custom_op("bough::multiply", mutates_args=())
def _multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    return multiply(rows, matrix, bias)


@_multiply.register_fake  # pyright: ignore[reportUnknownMemberType]
def _shape(rows: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    del bias
    return rows.new_empty((rows.shape[0], matrix.shape[0]))


@cache
def halved() -> bool:
    """Whether MKL uses half of the registers: on processors with AVX-512 that are not Intel's."""
    told = Path("/proc/cpuinfo")
    other = told.exists() and "AuthenticAMD" in told.read_text()
    return other and torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkldnn.is_available()


def products(*modules: nn.Module) -> bool:
    """Whether they are products with matrices of float32, and nothing besides: no adapters, nobody who listens."""
    for each in modules:
        if type(each) is not nn.Linear or type(each.weight) is not nn.Parameter or each.weight.dtype != torch.float32:
            return False
    return unheard(*modules)


def slopes(
    rows: Float[Tensor, "n W"],
    matrices: Sequence[Float[Tensor, "_ W"]],
    pulls: Sequence[Float[Tensor, "n _"]],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of rows, and of the matrices that they were multiplied with, of those that are wanted.

    That of the rows is summed up within the products: sums of their own would take as long as some of them.

    Args:
        rows: [n, W].
        matrices: [V, W] each, with a V of its own.
        pulls: [n, V] each, the gradients of the products.
        wanted: For the rows and each matrix.
    """
    back = None
    if wanted[0]:
        back = pulls[0] @ matrices[0]
        for pull, matrix in zip(pulls[1:], matrices[1:], strict=True):
            back.addmm_(pull, matrix)
    return [back, *(pull.T @ rows if asked else None for pull, asked in zip(pulls, wanted[1:], strict=True))]
