"""Tensors of attention heads, as code of ours reads them in memory."""

import ctypes
import warnings
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from bough.machine.code import machine_code

NUMBERS = {torch.float32: "float", torch.float64: "double"}


class Heads(ctypes.Structure):
    """[heads, tokens, width]: where they begin, and how far a head, and a token, are apart."""

    _fields_ = (("at", ctypes.c_void_p), ("head", ctypes.c_int64), ("token", ctypes.c_int64))


def code_for(
    source: Path, dtype: torch.dtype, width: int, *defines: str, without: str | None = None
) -> ctypes.CDLL | None:
    """A C++ file as code for heads of such numbers, so many in each; None where there is none.

    Compiling it takes seconds, once a machine.

    Args:
        source: The file.
        dtype: Of the numbers.
        width: How many a head has.
        defines: Of the preprocessor, besides NUMBER and WIDTH.
        without: What to warn of where it cannot be compiled; None is nothing, as others do.
    """
    if dtype not in NUMBERS or width % 4:
        return None
    try:
        return machine_code(source, f"NUMBER={NUMBERS[dtype]}", f"WIDTH={width}", *defines)
    except OSError as error:
        if without is not None:
            warnings.warn(f"{without}: {error}; install g++ or clang++", stacklevel=3)
        return None


def heads(tensor: Tensor) -> Heads:
    """Where [heads, tokens, ...] lie. The tensor must outlive what reads it."""
    return Heads(tensor.data_ptr(), tensor.stride(0), tensor.stride(1))


def pointers(*tensors: Tensor) -> list[int]:
    """Where tensors begin, for code that knows how they go on; they must outlive what reads them."""
    return [each.data_ptr() for each in tensors]


def plain(tensor: Float[Tensor, "H U D"], *, like: Tensor) -> Float[Tensor, "H U D"]:
    """The same as code may read it, which looks at neither type nor strides within a head.

    Raises:
        TypeError: when its numbers are not of the type of `like`.
    """
    if tensor.dtype != like.dtype:
        raise TypeError(f"attention: got numbers of {tensor.dtype}; need {like.dtype}, as the model said")
    return tensor if tensor.stride(2) == 1 else tensor.contiguous()


def room(like: Float[Tensor, "H U D"]) -> Float[Tensor, "H U D"]:
    """Room for as much, token by token in memory, as a layer goes on with it."""
    return like.new_empty((like.shape[1], like.shape[0], like.shape[2])).transpose(0, 1)
