"""A model compiled into one piece of machine code, but for attention, which stays its caller's.

Where oneDNN multiplies faster than compiled code does, products are calls from it, too (see `Opaque`).
"""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from bough.policy.attention import Attend, causal

_caller = threading.local()


Hidden: TypeAlias = Callable[[Tensor, Tensor, Attend, Tensor | None, Attend | None], Tensor]
"""(tokens [U], positions [U], attend, wanted [m] or None, last) -> final hidden states [U, W], or [m, W]."""


class Compiled:
    """A model's forward pass without gradients: norms, rotations and activations fused, few calls from Python.

    It is compiled twice, for all tokens and for some of them in the last layer, each for any number of tokens, which
    takes tens of seconds; later processes find it on disk.
    """

    def __init__(self, hidden: Hidden, device: torch.device) -> None:
        """Compile.

        Args:
            hidden: What is compiled.
            device: Where tensors live.

        Raises:
            ValueError: when that fails.
        """

        def run(tokens: Tensor, positions: Tensor) -> Tensor:
            return hidden(tokens, positions, _hand_back, None, None)

        def run_few(tokens: Tensor, positions: Tensor, wanted: Tensor) -> Tensor:
            def last(
                layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
            ) -> Tensor:
                return _attend_last(query, key, value, wanted, layer, scale, window or 0)

            return hidden(tokens, positions, _hand_back, wanted, last)

        self._run, self._run_few = _compile(run), _compile(run_few)
        try:
            # As it is going to be called, or it would be compiled again then. The model's own numbers are constants:
            # else each is handed in anew, as a tensor.
            compiler: Any = import_module("torch._dynamo.config")
            with torch.inference_mode(), compiler.patch(specialize_float=True):
                place = torch.arange(5, device=device)
                self(place, place.clone(), causal)
                self(place, place.clone(), causal, place[:3].clone(), _the_first(3))
        except Exception as error:  # of many kinds, as code of many tools is run
            raise ValueError(uncompilable(error)) from error

    @torch.inference_mode()
    def __call__(
        self,
        tokens: Tensor,
        positions: Tensor,
        attend: Attend,
        wanted: Tensor | None = None,
        last: Attend | None = None,
    ) -> Tensor:
        """Final hidden states [U, W], or those `wanted` [m, W]."""
        # One of anything is compiled anew by torch: it takes a size of 1 for a constant.
        if len(tokens) == 1:
            both = self(tokens.repeat(2), positions.repeat(2), _first(attend))
            return both[:1]
        if wanted is not None and (len(wanted) == 1 or last is None):
            return self(tokens, positions, attend)[wanted]
        _caller.attend, _caller.last = attend, last
        try:
            return self._run(tokens, positions) if wanted is None else self._run_few(tokens, positions, wanted)
        finally:
            del _caller.attend, _caller.last


def _compile(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    # What it is compiled for never changes, and a check of that takes a twentieth of a pass. Compiled code is kept
    # by the code that it was made of, which therefore must be this model's own.
    run.__code__ = run.__code__.replace()
    compiler: Any = torch.compiler
    options: Any = {"guard_filter_fn": compiler.skip_all_guards_unsafe, "size_asserts": False}
    return torch.compile(run, dynamic=True, options=options)  # pyright: ignore[reportUnknownMemberType]


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


def _the_first(tokens: int) -> Attend:
    """Attention that answers for the first tokens alone."""

    def first(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        return causal(layer, query, key, value, scale, window=window)[:, :tokens]

    return first


# To the compiler an operation of which it knows the shape of the result: it neither looks into it nor moves it.
# Compiled code is found on disk by the operations' names, so another layout of a result needs another name.
@torch.library.custom_op("bough::attend_by_token", mutates_args=())
def _attend(query: Tensor, key: Tensor, value: Tensor, layer: int, scale: float, window: int) -> Tensor:
    attend: Attend = _caller.attend
    return _by_token(attend(layer, query, key, value, scale, window=window or None))


@_attend.register_fake  # pyright: ignore[reportUnknownMemberType]
def _shape(query: Tensor, key: Tensor, value: Tensor, layer: int, scale: float, window: int) -> Tensor:
    del key, value, layer, scale, window
    return query.new_empty((query.shape[1], query.shape[0], query.shape[2])).transpose(0, 1)


@torch.library.custom_op("bough::attend_last_by_token", mutates_args=())
def _attend_last(
    query: Tensor, key: Tensor, value: Tensor, wanted: Tensor, layer: int, scale: float, window: int
) -> Tensor:
    del wanted
    last: Attend = _caller.last
    return _by_token(last(layer, query, key, value, scale, window=window or None))


@_attend_last.register_fake  # pyright: ignore[reportUnknownMemberType]
def _few(query: Tensor, key: Tensor, value: Tensor, wanted: Tensor, layer: int, scale: float, window: int) -> Tensor:
    del key, value, layer, scale, window
    return query.new_empty((wanted.shape[0], query.shape[0], query.shape[2])).transpose(0, 1)


def _by_token(mixed: Float[Tensor, "H U D"]) -> Float[Tensor, "H U D"]:
    """The same, as the compiler is told that it lies in memory: token by token, as it is read next."""
    return mixed.transpose(0, 1).contiguous().transpose(0, 1)


def _hand_back(
    layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
) -> Tensor:
    """An `Attend` for the compiler to see: whoever runs the pass attends."""
    return _attend(query, key, value, layer, scale, window or 0)
