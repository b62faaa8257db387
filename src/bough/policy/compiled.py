"""A model compiled into one piece of machine code, but for attention, which stays its caller's."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bough.policy.attention import Attend, causal

_caller = threading.local()


class Compiled:
    """A model's forward pass without gradients: norms, rotations and activations fused, few calls from Python.

    It is compiled once, for any number of tokens, which takes tens of seconds; later processes find it on disk.
    """

    def __init__(self, hidden: Callable[[Tensor, Tensor, Attend], Tensor], device: torch.device) -> None:
        """Compile.

        Args:
            hidden: (tokens [U], positions [U], attend) -> final hidden states [U, W].
            device: Where tensors live.

        Raises:
            ValueError: when that fails.
        """

        def run(tokens: Tensor, positions: Tensor) -> Tensor:
            return hidden(tokens, positions, _hand_back)

        # What it is compiled for never changes, and a check of that takes a twentieth of a pass. Compiled code is kept
        # by the code that it was made of, which therefore must be this model's own.
        run.__code__ = run.__code__.replace()
        compiler: Any = torch.compiler
        options: Any = {"guard_filter_fn": compiler.skip_all_guards_unsafe}
        self._run = torch.compile(run, dynamic=True, options=options)  # pyright: ignore[reportUnknownMemberType]
        try:
            # As it is going to be called, or it would be compiled again then.
            with torch.inference_mode():
                place = torch.arange(3, device=device)
                self(place, place.clone(), causal)
        except Exception as error:  # of many kinds, as code of many tools is run
            raise ValueError(uncompilable(error)) from error

    @torch.inference_mode()
    def __call__(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Final hidden states [U, W]."""
        if len(tokens) == 1:
            # One of anything is compiled anew by torch: it takes a size of 1 for a constant.
            both = self(tokens.repeat(2), positions.repeat(2), _first(attend))
            return both[:1]
        _caller.attend = attend
        try:
            return self._run(tokens, positions)
        finally:
            del _caller.attend


def uncompilable(error: Exception) -> str:
    """What to say of a model that torch failed to compile."""
    why = (str(error) or type(error).__name__).splitlines()[0]
    return (
        f"got a model that torch cannot compile here ({why}); need one that it can and, on a CPU, a C++ compiler (g++ "
        "or clang++); or say compile=false"
    )


def _first(attend: Attend) -> Attend:
    """Attention of the first of two tokens alone; the second gets the same."""

    def only(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        mixed = attend(layer, query[:, :1], key[:, :1], value[:, :1], scale, window=window)
        return mixed.expand(-1, 2, -1)

    return only


# To the compiler an operation of which it knows the shape of the result: it neither looks into it nor moves it.
@torch.library.custom_op("bough::attend", mutates_args=())
def _attend(query: Tensor, key: Tensor, value: Tensor, layer: int, scale: float, window: int) -> Tensor:
    attend: Attend = _caller.attend
    return attend(layer, query, key, value, scale, window=window or None).contiguous()


@_attend.register_fake  # pyright: ignore[reportUnknownMemberType]
def _shape(query: Tensor, key: Tensor, value: Tensor, layer: int, scale: float, window: int) -> Tensor:
    del key, value, layer, scale, window
    return query.new_empty(query.shape)


def _hand_back(
    layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
) -> Tensor:
    """An `Attend` for the compiler to see: whoever runs the pass attends."""
    return _attend(query, key, value, layer, scale, window or 0)
