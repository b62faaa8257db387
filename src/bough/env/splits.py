"""Splits by content: a hash of the content assigns an instance to its split, so splits never overlap."""

import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar

from bough.env.env import Split
from bough.tree import Task

SHARES: Mapping[Split, float] = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""The share of all instances in each split. Changing it moves instances between splits."""

BLOCK = 256
"""Maximum number of samples that are prepared at once."""

PATIENCE = 4000
"""Consecutive samples without a new instance before a split counts as exhausted."""

Instance = TypeVar("Instance")


def content_hash(content: str) -> str:
    """Hashes a content to 16 hexadecimal digits; the same on every machine and in every version of Python."""
    return blake2b(content.encode(), digest_size=8).hexdigest()


def split_of(content: str) -> Split:
    """Returns the split of a content.

    Args:
        content: The canonical form of the instance. Symmetric instances must give the same content, or a mirror
            image of a test instance may be in the training split.
    """
    # Salted, so the split is independent of the digits of `content_hash`.
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
    decided: bool = False,
    split_content: Callable[[Instance], str] | None = None,
    prepare: Callable[[Sequence[Instance]], object] | None = None,
) -> list[Instance]:
    """Samples `count` instances of a split with different contents.

    The result is a function of the arguments, and a smaller `count` gives a prefix of the result of a larger one.

    Args:
        name: Name of the environment, for the error and to separate the samples of different environments.
        split: The split to sample from.
        count: Number of instances.
        seed: Seed of the samples.
        propose: Samples any instance.
        content: An instance's canonical content, see `split_of`.
        accept: Whether an instance may be used (solvable, hard enough); called after the cheaper tests.
        decided: Whether `propose` samples instances of the split alone, so that their content does not decide it.
        split_content: What decides an instance's split, where several contents must share one; None for the content.
        prepare: Called with up to `BLOCK` samples before `content` is called with each; computes and caches their
            contents together, where that is cheaper.

    Raises:
        ValueError: when `count` is negative, or `PATIENCE` consecutive samples give no new instance.
    """
    if count < 0:
        raise ValueError(f"{name}.tasks: got count={count}; need 0 or more")
    rng, deciding = random.Random(f"{name} {seed}"), split_content or content
    found: dict[str, Instance] = {}
    misses = block = 0
    waiting: deque[Instance] = deque()
    while len(found) < count:
        if not waiting and prepare is not None:
            needed = math.ceil((count - len(found)) / (1.0 if decided else SHARES[split]))
            # Never smaller than the last one, because the last few instances would take a block each.
            block = min(max(needed, block), BLOCK)
            waiting.extend(propose(rng) for _ in range(block))
            prepare(waiting)
        instance = waiting.popleft() if waiting else propose(rng)
        about = content(instance)
        if about not in found and (decided or split_of(deciding(instance)) == split) and accept(instance):
            found[about] = instance
            misses = 0
            continue
        misses += 1
        if misses >= PATIENCE:
            raise ValueError(
                f"{name}.tasks: got count={count} for split {split!r}, but after {len(found)} different instances "
                f"{PATIENCE} samples gave no new one; need a smaller count (tasks.count; "
                "evaluation.tasks.count for held-out tasks), or settings with more instances (size)"
            )
    return list(found.values())


def instance_task(*, name: str, content: str, data: Mapping[str, object]) -> Task:
    r"""Returns the task of an instance: its id and its seed come from its content, so equal ids mean equal tasks.

    Examples:
        >>> instance_task(name="frozenlake", content="SF\nFG", data={"rows": ["SF", "FG"]}).id
        'frozenlake-74b40f9b19dea9e9'
    """
    digest = content_hash(content)
    return Task(id=f"{name}-{digest}", seed=int(digest[:8], 16), data=data)
