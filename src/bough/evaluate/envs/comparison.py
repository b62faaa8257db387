"""States and steps as JSON data, to compare them across calls and processes."""

import json
from collections.abc import Sequence
from hashlib import blake2b

from bough.env import State, Step
from bough.tree import message_record, messages, tool_record

MOST_SHOWN = 160

MOST_ADMISSIBLE = 1000
"""A longer list of actions is recorded by its hash: a million in each state of each walk fill the memory."""


def state_record(state: State) -> dict[str, object]:
    """All of a state but its private value."""
    return {
        "observation": [message_record(each) for each in messages(state.observation)],
        "key": state.key,
        "admissible": None if state.admissible is None else _shortened(state.admissible),
        "tools": [tool_record(each) for each in state.tools],
        "seat": state.seat,
    }


def _shortened(actions: Sequence[str]) -> list[str]:
    """A list of actions; a long one has its first actions, its length and its hash."""
    if len(actions) <= MOST_ADMISSIBLE:
        return [*actions]
    digest = blake2b("\0".join(actions).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return [*actions[:10], f"... ({len(actions):,} actions, hash {digest})"]


def step_record(step: Step) -> dict[str, object]:
    """All of a step but `info` and the number of replayed steps."""
    return {
        **state_record(step.state),
        "reward": float(step.reward),
        "outcome": step.outcome.name,
        "valid": step.valid,
        "success": step.success,
        "payoffs": dict(step.payoffs),
        "successes": dict(step.successes),
    }


def as_text(record: object) -> str:
    """A record as JSON, with sorted keys."""
    return json.dumps(record, sort_keys=True, default=str)


def difference(first: dict[str, object], second: dict[str, object], but: Sequence[str] = ()) -> str:
    """The first field in which two records differ, with both values; "" when they are equal.

    Args:
        first: A record.
        second: Another.
        but: Fields that may differ.
    """
    for name in sorted({*first} | {*second}):
        one, two = first.get(name), second.get(name)
        if name not in but and one != two:
            return f"{name} {shown(one, two)} and {shown(two, one)}"
    return ""


def shown(value: object, other: object = None) -> str:
    """A value for a message: short, around the first character that differs from another value."""
    text, beside = (value if isinstance(value, str) else as_text(value) for value in (value, other))
    at = next((place for place, pair in enumerate(zip(text, beside, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, at - MOST_SHOWN // 2) if other is not None else 0
    part = text[begin : begin + MOST_SHOWN]
    return f"{'...' if begin else ''}{part!r}{'...' if begin + MOST_SHOWN < len(text) else ''}"
