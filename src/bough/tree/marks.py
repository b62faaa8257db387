"""Marks of a node: its kind, how its path ended, who wrote it."""

from enum import IntEnum


class Kind(IntEnum):
    """What a node's tokens are."""

    PROMPT = 0
    """The root: instructions and first observation."""
    ACTION = 1
    """Written by the policy, or put in its place (see `Source`)."""
    OBSERVATION = 2
    """Written by the environment, with whatever the chat format puts around it."""
    EDIT = 3
    """The context was rebuilt. The text starts anew here; credit flows on to the parent."""


class Outcome(IntEnum):
    """How the path that ends at a node ended. Inner nodes are `OPEN`."""

    OPEN = 0
    TERMINATED = 1
    """The environment ended the episode."""
    TRUNCATED = 2
    """A budget of turns, tokens or context ran out."""
    REFUSED = 3
    """A guard stopped the path."""
    FAILED = 4
    """The environment or the engine broke. Never enters a group, a baseline, a mean or a loss."""


COUNTED = (Outcome.TERMINATED, Outcome.TRUNCATED)
"""Outcomes whose paths count in statistics and are learned from."""


class Source(IntEnum):
    """Who wrote a node."""

    SAMPLED = 0
    """The policy, by sampling: the only nodes with log-probabilities and, unless a recipe says so, with a loss."""
    FORCED = 1
    """The environment or the recipe."""
    TEACHER = 2
    """An oracle or a stronger model."""
    REPLAYED = 3
    """An earlier run of the policy."""
    GREEDY = 4
    """The policy, at temperature 0: it says nothing of how likely it was to write this."""


TRUNK = "trunk"
"""In the info of the first action of a path: the number of the chain that an explorer grew it from."""

TRUNCATED_BY = "truncated"
"""In the info of a leaf: why its path was truncated. A budget, "environment", or `EXPLORER`."""

EXPLORER = "explorer"
"""The value of `TRUNCATED_BY` for a path that the explorer abandoned before its end."""

STUB = "stub"
"""In the info of a leaf: an action that was judged and never done. It is learned from, and says nothing of success."""

PRUNED = "pruned_branches"
"""In the info of a root: the number of branches that an explorer pruned as too similar to another."""

ANSWER = "answer"
"""In the info of the one node that a search answers with: the end of a path, or the best place when none has ended."""
