"""A second device for tests, "sim": its tensors live on the CPU, and it refuses what a GPU refuses.

An operation on a tensor of "sim" and one of the CPU raises, as on CUDA, unless the latter is a number (0 dimensions).
Only `to`, `cpu`, `copy_` and `item` cross. `numpy` raises. Everything runs with true values, so that code whose control
flow depends on them runs too. What it does not show: kernels of a GPU, their precision, their time and their memory.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "sim"

CROSSING = {"_to_copy", "copy_", "_copy_from", "_local_scalar_dense", "set_", "detach", "_foreach_copy_"}
"""Operations that may read one device and write to the other."""

seen: dict[str, int] = {}
"""How often each crossing took place."""


class Simulated(Tensor):
    """A tensor of the device."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Simulated":
        make: Any = torch.Tensor._make_wrapper_subclass
        made: Simulated = make(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=f"{NAME}:0",
            requires_grad=False,
        )
        made.inner = inner
        return made

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def __deepcopy__(self, memo: dict[int, object]) -> "Simulated":
        if id(self) not in memo:
            made = Simulated(self.inner.detach().clone()).requires_grad_(self.requires_grad)
            made.__dict__.update({name: value for name, value in self.__dict__.items() if name == "_is_param"})
            memo[id(self)] = made
        made: Any = memo[id(self)]
        return made

    def __repr__(self) -> str:
        return f"Simulated({self.inner!r})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        return _run(func, args, kwargs or {})


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func._schema.name.removeprefix("aten::")
    if name == "to":  # in inference mode it arrives whole
        return func.decompose(*args, **kwargs)
    flat, _ = tree_flatten((args, kwargs))
    tensors = [each for each in flat if isinstance(each, Tensor)]
    mixed = [each for each in tensors if not isinstance(each, Simulated)]
    if name in CROSSING:
        seen[name] = seen.get(name, 0) + 1
    elif any(each.ndim for each in mixed):
        shapes = [(str(each.device), tuple(each.shape)) for each in tensors]
        raise RuntimeError(f"aten::{name}: expected all tensors to be on the same device, but got {shapes}")
    goes_to = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else NAME
    inner_of: dict[int, Simulated] = {id(each.inner): each for each in tensors if isinstance(each, Simulated)}

    def bare(each: Any) -> Any:
        if isinstance(each, torch.device):
            return torch.device("cpu")
        return each.inner if isinstance(each, Simulated) else each

    given_args, given = tree_map(bare, args), tree_map(bare, kwargs)
    if "device" in given and given["device"] is not None:
        given["device"] = torch.device("cpu")
    if name == "_to_copy" and goes_to == "cpu":
        return func(*given_args, **given).clone()

    def wrapped(each: Any) -> Any:
        if not isinstance(each, Tensor):
            return each
        # In-place operations return their argument.
        if id(each) in inner_of:
            return inner_of[id(each)]
        return each if any(each is one for one in mixed) else Simulated(each)

    found = func(*given_args, **given)
    for each in tensors:
        if isinstance(each, Simulated) and each.inner.shape != each.shape:
            raise AssertionError(f"{name} resized {tuple(each.shape)} to {tuple(each.inner.shape)}")
    return tree_map(wrapped, found)


class _Module:
    """What PyTorch looks up in `torch.sim`."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def get_rng_state(self, device: object = 0) -> Tensor:
        del device
        return torch.zeros(0, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: object = 0) -> None:
        del state, device

    def manual_seed_all(self, seed: int) -> None:
        del seed

    def _is_in_bad_fork(self) -> bool:
        return False


@cache
def device() -> torch.device:
    """The device, registered with PyTorch on the first call."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    # Otherwise `Module.to` makes a new parameter of each name, and tied weights come apart.
    torch.__future__.set_swap_module_params_on_conversion(True)
    library = torch.library.Library("aten", "IMPL")
    _keep.append(library)

    def empty(size: Sequence[int], *, dtype: torch.dtype | None = None, **ignored: object) -> Tensor:
        del ignored
        return Simulated(torch.empty(size, dtype=dtype, device="cpu"))

    def empty_strided(
        size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None = None, **ignored: object
    ) -> Tensor:
        del ignored
        return Simulated(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))

    def arange(*ends: float, dtype: torch.dtype | None = None, **ignored: object) -> Tensor:
        del ignored
        return Simulated(torch.arange(*ends, dtype=dtype, device="cpu"))

    def copy_from(source: Tensor, to: Tensor, non_blocking: bool = False) -> Tensor:
        del non_blocking
        (to.inner if isinstance(to, Simulated) else to).copy_(source.inner if isinstance(source, Simulated) else source)
        return to

    library.impl("_copy_from", copy_from, "PrivateUse1")
    for overload in ("arange", "arange.start", "arange.start_step"):
        library.impl(overload, arange, "PrivateUse1")
    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    return torch.device(NAME)


_keep: list[object] = []
