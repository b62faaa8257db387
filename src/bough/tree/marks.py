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


TRUNK = "trunk"
"""In the info of the first action of a path: the number of its chain in the explorer."""

TRUNCATED_BY = "truncated"
"""In the info of a leaf: why its path was truncated. A budget, "environment", or `EXPLORER`."""

EXPLORER = "explorer"
"""The value of `TRUNCATED_BY` for a path that the explorer abandoned before its end."""

STUB = "stub"
"""In the info of a leaf: an action that was judged, not executed. It enters the loss, not the success statistics."""

PRUNED = "pruned_branches"
"""In the info of a root: the number of branches that an explorer pruned as too similar to another."""

ANSWER = "answer"
"""In the info of one node, the result of a search: the end of a path, or the best state when no path ended."""
