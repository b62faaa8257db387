"""The device and dtype of a policy."""

from typing import Literal, TypeAlias

Dtype: TypeAlias = Literal["float32", "bfloat16", "float64"]


def pick_device(device: str) -> str:
    """`device`, or for "auto" the first CUDA device if there is one and else the CPU.

    Raises:
        ValueError: when this machine has no such device.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"device: got {device!r} ({reason}); need 'auto', 'cpu' or a device this machine has"
        ) from error
    return device
