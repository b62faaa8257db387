"""A family of generated programming tasks: templates with parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

Tier: TypeAlias = Literal["line", "easy", "medium", "hard"]

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Tasks of one kind. The texts have the parameters in braces, as in `str.format`.

    Attributes:
        name: Its name.
        tier: Difficulty of its tasks. A task of the tier "line" is one expression, the body of the function.
        prompt: The task.
        header: The first line of the function `f`.
        body: The reference solution, the lines below the header; the expression after `return` in the tier "line".
        parameters: Samples parameters.
        arguments: Samples arguments of a test, from the parameters.
    """

    name: str
    tier: Tier
    prompt: str
    body: str
    parameters: Callable[[Random], Parameters]
    arguments: Callable[[Random, Parameters], tuple[object, ...]]
    header: str = "def f(xs):"


def numbers(rng: Random, least: int = 0, most: int = 8, low: int = -20, high: int = 20) -> list[int]:
    """A list of numbers; its length is from `least` to `most`."""
    return [rng.randint(low, high) for _ in range(rng.randint(least, most))]


def word(rng: Random, letters: str = "abcde", most: int = 8) -> str:
    """A word, which may be empty."""
    return "".join(rng.choices(letters, k=rng.randint(0, most)))


def words(rng: Random, most: int = 7) -> list[str]:
    """A list of short words, with repetitions."""
    return [word(rng, "abc", 3) or "a" for _ in range(rng.randint(0, most))]
