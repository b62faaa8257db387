"""Labels of a node: its kind, its outcome, its source."""

from enum import IntEnum


class Kind(IntEnum):
    """The kind of a node's tokens."""

    PROMPT = 0
    """The root: instructions and first observation."""
    ACTION = 1
    """Sampled by the policy, or put in its place (see `Source`)."""
    OBSERVATION = 2
    """Text of the environment, with the chat format's tokens around it."""
    EDIT = 3
    """A rebuilt context. The text starts again here; credit flows to the parent."""


class Outcome(IntEnum):
    """Outcome of the path that ends at a node. Inner nodes are `OPEN`."""

    OPEN = 0
    TERMINATED = 1
    """The environment ended the episode."""
    TRUNCATED = 2
    """A budget of turns, tokens or context is exhausted."""
    REFUSED = 3
    """A safety policy stopped the path."""
    FAILED = 4
    """An error of the environment or the engine. Never enters a group, a baseline, a mean or a loss."""


COUNTED = (Outcome.TERMINATED, Outcome.TRUNCATED)
"""Outcomes whose paths enter statistics and losses."""


class Source(IntEnum):
    """The source of a node's tokens."""

    SAMPLED = 0
    """The policy, by sampling: the only nodes with log-probabilities and, by default, with a loss."""
    FORCED = 1
    """The environment or the recipe."""
    TEACHER = 2
    """An oracle or a stronger model."""
    REPLAYED = 3
    """An earlier run of the policy."""
    GREEDY = 4
    """The policy, at temperature 0, without the probabilities of its samples."""


class TruncatedBy(IntEnum):
    """The reason why a path is truncated; the limits have the names of the fields of `Limits`."""

    NOTHING = 0
    """The path is not truncated."""
    TURNS = 1
    TOKENS = 2
    TREE_TURNS = 3
    TREE_TOKENS = 4
    TREE_CALLS = 5
    CONTEXT = 6
    """The next prompt does not fit the model's context."""
    ENVIRONMENT = 7
    """The environment's own limit."""
    EXPLORER = 8
    """The explorer abandoned the path before its end."""
    REPETITION = 9
    """The policy repeated itself."""
    NO_PLAN = 10
    """The oracle has no plan for the state."""
    NOT_EXECUTED = 11
    """The last action was scored, not executed. It enters the loss, not the success statistics."""


class Ternary(IntEnum):
    """A truth value that may be unknown. Compare with a member: -1, like 1, is true as a bool."""

    UNKNOWN = -1
    NO = 0
    YES = 1

    @property
    def known(self) -> bool | None:
        """The value as a bool; None when unknown."""
        return None if self is Ternary.UNKNOWN else self is Ternary.YES
