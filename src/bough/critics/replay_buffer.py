"""A replay buffer of turns."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.tree import Ints, Kind, Outcome, Rewarded, context, path_view


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """One turn, without its tree.

    Attributes:
        text: Context and action, int32.
        read: The number of context tokens, >= 1.
        reward: The reward from this action to the next.
        after: The context of the next turn, int32; `text` where a budget cut the episode short.
        goes_on: Whether there is a next turn.
        done: Whether the environment ended the episode.
        changed: Whether the action changed the state's key; None where a key is unknown.
    """

    text: Ints
    read: int
    reward: float
    after: Ints
    goes_on: bool
    done: bool
    changed: bool | None = None

    def shortened(self, limit: int) -> "Turn":
        """A copy with the last `limit` tokens of each text."""
        cut = max(0, len(self.text) - limit)
        return Turn(
            text=self.text[cut:],
            read=max(1, self.read - cut),
            reward=self.reward,
            after=self.after[-limit:],
            goes_on=self.goes_on,
            done=self.done,
            changed=self.changed,
        )


def turns_of(rewarded: Rewarded) -> Iterator[tuple[int, Turn]]:
    """Yield each turn of the counted paths of a tree once, with its last node."""
    tree, view = rewarded.tree, path_view([rewarded])
    nodes, once = np.unique(view.node, return_index=True)
    last = view.last
    for node, at in zip(nodes.tolist(), once.tolist(), strict=True):
        read = context(tree, int(view.first[at]))
        text = np.concatenate([context(tree, node), tree.tokens_of(node)])
        goes_on = not last[at]
        leaf = view.leaf[view.path[at]]
        shown = 0 if tree.kind[leaf] == Kind.ACTION else tree.state_key[leaf]
        key, key_after = view.key[at], view.key[at + 1] if goes_on else shown
        yield (
            node,
            Turn(
                text=text,
                read=len(read),
                reward=float(view.reward[at]),
                after=context(tree, int(view.first[at + 1])) if goes_on else text,
                goes_on=goes_on,
                done=not goes_on and bool(tree.outcome[leaf] == Outcome.TERMINATED),
                changed=bool(key != key_after) if key and key_after else None,
            ),
        )


@dataclass(slots=True, kw_only=True)
class ReplayBuffer:
    """The newest turns, up to a capacity; all without one.

    Attributes:
        capacity: Maximum number of turns; None for all.
        turns: The turns, oldest first.
    """

    capacity: int | None = None
    turns: deque[Turn] = field(default_factory=deque[Turn])

    def add(self, turns: Sequence[Turn]) -> None:
        """Add turns; the oldest are dropped."""
        self.turns.extend(turns)
        while self.capacity is not None and len(self.turns) > self.capacity:
            self.turns.popleft()

    def draw(self, count: int, generator: np.random.Generator) -> list[Turn]:
        """Sample turns uniformly, with replacement."""
        return [self.turns[int(place)] for place in generator.integers(len(self.turns), size=count)]
