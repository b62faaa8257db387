"""Splits by content: the content of an instance decides which split it is in, so no split can leak into another."""

import random
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TypeVar

from bough.env import Split
from bough.tree import Task

SHARES: Mapping[Split, float] = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""The share of all instances that each split gets. Changing it moves instances between splits."""

PATIENCE = 4000
"""Draws in a row without a new instance before a split counts as exhausted."""

Instance = TypeVar("Instance")


def content_hash(content: str) -> str:
    """16 hexadecimal digits that name a content; the same on every machine and in every version of Python."""
    return blake2b(content.encode(), digest_size=8).hexdigest()


def split_of(content: str) -> Split:
    """The split that a content belongs to.

    Args:
        content: What makes the instance what it is, in one canonical form: instances that are the same up to a
            symmetry must give the same content, or a mirror image of a test instance may be trained on.
    """
    # Salted, so that the split does not depend on the digits that `content_hash` shows.
    bucket = int(content_hash(f"split\n{content}"), 16) / 2**64
    reach = 0.0
    for split, share in SHARES.items():
        reach += share
        if bucket < reach:
            return split
    return "test"


def draw_instances(
    *,
    name: str,
    split: Split,
    count: int,
    seed: int,
    propose: Callable[[random.Random], Instance],
    content: Callable[[Instance], str],
    accept: Callable[[Instance], bool],
) -> list[Instance]:
    """`count` instances of a split with contents that differ from each other.

    The result depends on the arguments alone, and a smaller `count` gives the beginning of what a larger one gives.

    Args:
        name: Of the environment, for the error and to keep the draws of different environments apart.
        split: Which split to draw from.
        count: How many.
        seed: Drives the draws.
        propose: Draws any instance.
        content: An instance's canonical content, see `split_of`.
        accept: Whether an instance may be used (solvable, hard enough); asked after the cheaper tests.

    Raises:
        ValueError: when `count` is negative, or `PATIENCE` draws in a row brought nothing new.
    """
    if count < 0:
        raise ValueError(f"{name}.tasks: got count={count}; need 0 or more")
    rng = random.Random(f"{name} {seed}")
    found: dict[str, Instance] = {}
    misses = 0
    while len(found) < count:
        instance = propose(rng)
        about = content(instance)
        if about not in found and split_of(about) == split and accept(instance):
            found[about] = instance
            misses = 0
            continue
        misses += 1
        if misses >= PATIENCE:
            raise ValueError(
                f"{name}.tasks: got count={count} for split {split!r}, but after {len(found)} different instances "
                f"{PATIENCE} draws brought no new one; need a smaller count, or settings with more instances (size)"
            )
    return list(found.values())


def instance_task(*, name: str, content: str, data: Mapping[str, object]) -> Task:
    r"""The task of an instance: its id and its seed come from its content, so equal ids mean equal tasks.

    Example:
        >>> instance_task(name="frozenlake", content="SF\nFG", data={"rows": ["SF", "FG"]}).id
        'frozenlake-74b40f9b19dea9e9'
    """
    digest = content_hash(content)
    return Task(id=f"{name}-{digest}", seed=int(digest[:8], 16), data=data)
