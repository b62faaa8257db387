"""The value of an environment's own state."""

from typing import TypeVar

from bough.env.env import State

T = TypeVar("T")


def value_of(state: State, kind: type[T], owner: str) -> T:
    """Returns `state.value`.

    Args:
        state: A state of the environment.
        kind: The class of its values.
        owner: Name of the environment, for the message.

    Raises:
        TypeError: for a state of another environment.
    """
    if not isinstance(state.value, kind):
        raise TypeError(f"{owner}: got a state with a value of type {type(state.value).__name__}; need one of its own")
    return state.value
