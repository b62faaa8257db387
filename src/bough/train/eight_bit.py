"""AdamW whose two moments take 8 bits a weight instead of 32."""

from typing import Any

import torch
from torch import Tensor

BLOCK, LEAST = 256, 4096
"""Weights that share a scale; a tensor of fewer than `LEAST`, or of no whole number of blocks, keeps plain moments."""

LEVELS_BYTES = 4 * 256
"""The values that 8 bits can stand for, which every moment keeps."""


def adamw8(groups: list[dict[str, Any]], **settings: Any) -> torch.optim.Optimizer:
    """Torchao's AdamW with block-wise dynamic quantization (arXiv 2110.02861), a step computed in float32.

    On CUDA steps are compiled; on a CPU they are not, as that takes longer than it saves.

    Raises:
        ImportError: when torchao is not installed.
    """
    try:
        from torchao.optim import AdamW8bit
    except ImportError as error:
        raise ImportError(
            "Optimizer.moment_bits=8 needs torchao, which can't be imported; do: pip install 'bough[eight-bit]'"
        ) from error
    untyped: Any = AdamW8bit

    class Uncompiled(untyped):
        def step(self, closure: Any = None) -> Any:
            with torch.compiler.set_stance("force_eager"):
                return untyped.step(self, closure)

    on_cuda = any(weight.is_cuda for group in groups for weight in group["params"])
    return (untyped if on_cuda else Uncompiled)(groups, block_size=BLOCK, **settings)


def taken_apart(name: str, moment: Tensor) -> dict[str, Tensor]:
    """What an optimizer keeps under a name, in plain tensors by name."""
    untyped: Any = moment
    if not hasattr(untyped, "codes"):
        return {name: moment}
    return {f"{name}.codes": untyped.codes, f"{name}.scale": untyped.scale}


def put_together(parts: dict[str, Tensor], like: Tensor) -> dict[str, Tensor]:
    """What `taken_apart` made of all that an optimizer keeps of the weight `like`, as it was."""
    whole = {name: part for name, part in parts.items() if "." not in name}
    for name in (name.removesuffix(".codes") for name in parts if name.endswith(".codes")):
        from torchao.optim.subclass_8bit import OptimState8bit

        untyped: Any = OptimState8bit
        moment = untyped.zeros(like.shape, name == "exp_avg", BLOCK, like.device, dtype=like.dtype)
        moment.codes.copy_(parts[f"{name}.codes"])
        moment.scale.copy_(parts[f"{name}.scale"])
        whole[name] = moment
    return whole


def moment_bytes(weight: Tensor, bits: int) -> int:
    """What both moments of a weight take."""
    if bits == 8 and _fits(weight):
        return 2 * (weight.numel() + 4 * weight.numel() // BLOCK + LEVELS_BYTES)
    return 2 * weight.nbytes


def _fits(weight: Tensor) -> bool:
    return weight.numel() >= LEAST and weight.numel() % BLOCK == 0
