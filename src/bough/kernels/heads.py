"""Tensors of attention heads as the C++ kernels address them."""

import ctypes
import warnings
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from bough.kernels.build import enabled, load_library

C_TYPES = {torch.float32: "float", torch.float64: "double"}


class Heads(ctypes.Structure):
    """[heads, tokens, width]: the address of the first element and the strides of heads and tokens, in elements."""

    _fields_ = (("at", ctypes.c_void_p), ("head", ctypes.c_int64), ("token", ctypes.c_int64))


def load_kernel(source: Path, dtype: torch.dtype, width: int, *defines: str, slower: str) -> ctypes.CDLL | None:
    """Load a kernel for heads of `width` elements; None where PyTorch's operations are to be used instead.

    Compiling takes about two seconds, once on a machine. Warns when it fails.

    Args:
        source: The C++ file.
        dtype: float32 or float64; None is returned for other types.
        width: A multiple of 4; None is returned for other widths.
        defines: Preprocessor definitions besides NUMBER and WIDTH.
        slower: The first words of the warning.
    """
    if not enabled() or dtype not in C_TYPES or width % 4:
        return None
    try:
        return load_library(source, f"NUMBER={C_TYPES[dtype]}", f"WIDTH={width}", *defines)
    except OSError as error:
        warnings.warn(f"{slower}: {error}; install g++ or clang++", stacklevel=3)
        return None


def heads(tensor: Tensor) -> Heads:
    """The address and strides of [heads, tokens, ...]. The tensor must outlive the kernel's call."""
    return Heads(tensor.data_ptr(), tensor.stride(0), tensor.stride(1))


def readable(tensor: Float[Tensor, "H U D"], *, like: Tensor) -> Float[Tensor, "H U D"]:
    """The same tensor with contiguous heads.

    Raises:
        TypeError: when its dtype is not that of `like`.
    """
    if tensor.dtype != like.dtype:
        raise TypeError(f"attention: got a tensor of {tensor.dtype}; need {like.dtype}, the model's dtype")
    return tensor if tensor.stride(2) == 1 else tensor.contiguous()


def empty_heads(like: Float[Tensor, "H U D"]) -> Float[Tensor, "H U D"]:
    """An uninitialised tensor of the same shape, laid out [U, H, D] in memory, as the output projection reads it."""
    return like.new_empty((like.shape[1], like.shape[0], like.shape[2])).transpose(0, 1)
