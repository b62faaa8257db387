"""A picture of a state, for people: an optional part of an environment."""

import importlib
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from bough.env.env import Env, State, Wrapper


@runtime_checkable
class StateView(Protocol):
    """An environment that draws its states.

    An environment of a package can have the function in a file `view.py` beside its own instead:
    `view_state(env, state) -> str`.
    """

    def view_state(self, state: State) -> str:
        """Returns the state as an SVG document, with a `viewBox`. It is shown as an image: scripts do not run."""
        ...


def view_state(env: Env, state: State) -> str | None:
    """Returns a state as an SVG document; None where neither the environment nor one that it wraps draws it.

    Raises:
        ValueError: when the result is no SVG document.
    """
    if isinstance(env, StateView):
        return _checked(env, env.view_state(state))
    if (beside := _beside(env)) is not None:
        return _checked(env, beside(env, state))
    if isinstance(env, Wrapper):
        # A wrapper's state has the inner state as its value, or is the inner state.
        return view_state(env.env, state.value if isinstance(state.value, State) else state)
    return None


def has_state_view(env: Env) -> bool:
    """Whether an environment, or one that it wraps, draws its states."""
    own = isinstance(env, StateView) or _beside(env) is not None
    return own or (isinstance(env, Wrapper) and has_state_view(env.env))


class _Draws(Protocol):
    def __call__(self, env: Env, state: State, /) -> str: ...


def _beside(env: Env) -> _Draws | None:
    """The function of the file `view.py` in the package of an environment's class."""
    package, _, _ = type(env).__module__.rpartition(".")
    if not package or find_spec(f"{package}.view") is None:
        return None
    return getattr(importlib.import_module(f"{package}.view"), "view_state", None)


def _checked(env: Env, drawn: object) -> str:
    if not isinstance(drawn, str) or not drawn.lstrip().startswith("<svg"):
        raise ValueError(f"{type(env).__name__}: got {str(drawn)[:60]!r} as a view; need a text that starts with <svg")
    return drawn
