"""Checks the shapes that functions and dataclasses state, at run time.

Of each function the first calls of a test are checked, and some of the others: all of them would take a third of a run.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, isclass, signature
from typing import Any, get_args

import jaxtyping
from beartype.door import is_bearable
from jaxtyping import AbstractArray, TypeCheckError, install_import_hook

_IN_SCOPE = jaxtyping.jaxtyped

FIRST, EVERY = 8, 37
"""How many calls of a function are checked, and which of those that follow."""

calls = Counter[Callable[..., Any]]()
"""How often each function was called in this test."""


def check_shapes(modules: Sequence[str]) -> None:
    """Check what is imported from now on, where it states a shape: pyright checks what states only other types."""
    # The hook puts this decorator on every function and class. Its own checks every argument twice.
    jaxtyping.jaxtyped = lambda **_: checked
    install_import_hook(modules, None)


def checked(made: Any) -> Any:
    """A function that checks the shapes that it states, of its arguments and its result; or a dataclass that does."""
    if isclass(made):
        if dataclasses.is_dataclass(made) and "__init__" in vars(made):
            made.__init__ = checked(made.__init__)
        return made
    stated = {name: hint for name, hint in made.__annotations__.items() if _has_shape(hint)}
    return _checking(made, stated) if stated else made


def _checking(function: Callable[..., Any], stated: dict[str, Any]) -> Callable[..., Any]:
    result = stated.pop("return", None)
    places: list[tuple[int, str, Any]] = []
    for place, parameter in enumerate(signature(function).parameters.values()):
        assert parameter.name not in stated or parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if parameter.name in stated:
            places.append((place, parameter.name, stated[parameter.name]))

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        calls[function] += 1
        if calls[function] > FIRST and calls[function] % EVERY:
            return function(*args, **kwargs)
        with _IN_SCOPE("context"):
            for place, name, hint in places:
                if place < len(args):
                    _check(function, name, args[place], hint)
                elif name in kwargs:
                    _check(function, name, kwargs[name], hint)
            made = function(*args, **kwargs)
            if result is not None:
                _check(function, "the result", made, result)
        return made

    return checking


def _check(function: Callable[..., Any], name: str, value: Any, hint: Any) -> None:
    if not (isinstance(value, hint) if isclass(hint) else is_bearable(value, hint)):
        shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
        kind = getattr(value, "dtype", type(value).__name__)
        raise TypeCheckError(f"{function.__module__}.{function.__qualname__}: {name}: got {kind}{shape}; need {hint}")


def _has_shape(hint: Any) -> bool:
    assert not (isinstance(hint, str) and "Tensor" in hint), f"{hint}: a quoted shape is not checked"
    return (isclass(hint) and issubclass(hint, AbstractArray)) or any(map(_has_shape, get_args(hint)))
