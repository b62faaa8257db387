"""A replay buffer of turns."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class ReplayBuffer:
    """The newest turns, up to a capacity; all without one."""

    def __init__(self, capacity: int | None = None) -> None:
        self._turns: deque[Turn] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, turns: Sequence[Turn]) -> None:
        """Add turns; the oldest are dropped."""
        self._turns.extend(turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, oldest first."""
        return tuple(self._turns)

    def draw(self, count: int, generator: np.random.Generator) -> list[Turn]:
        """Sample turns uniformly, with replacement."""
        return [self._turns[int(place)] for place in generator.integers(len(self._turns), size=count)]

    def state(self) -> dict[str, NDArray[Any]]:
        """All turns as arrays; texts are concatenated."""
        nothing = np.zeros(0, dtype=np.int32)
        return {
            "text": np.concatenate([nothing, *(turn.text for turn in self._turns)]),
            "text_tokens": np.asarray([len(turn.text) for turn in self._turns], dtype=np.int64),
            "read": np.asarray([turn.read for turn in self._turns], dtype=np.int64),
            "reward": np.asarray([turn.reward for turn in self._turns], dtype=np.float64),
            "after": np.concatenate([nothing, *(turn.after for turn in self._turns)]),
            "after_tokens": np.asarray([len(turn.after) for turn in self._turns], dtype=np.int64),
            "goes_on": np.asarray([turn.goes_on for turn in self._turns], dtype=np.uint8),
            "done": np.asarray([turn.done for turn in self._turns], dtype=np.uint8),
            "changed": np.asarray(
                [-1 if turn.changed is None else turn.changed for turn in self._turns], dtype=np.int8
            ),
        }

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        texts, afters = (np.split(state[name], np.cumsum(state[f"{name}_tokens"])[:-1]) for name in ("text", "after"))
        columns = (state[name].tolist() for name in ("read", "reward", "goes_on", "done", "changed"))
        self._turns.clear()
        self._turns.extend(
            Turn(
                text=text,
                after=after,
                read=read,
                reward=reward,
                goes_on=bool(goes_on),
                done=bool(done),
                changed=None if changed < 0 else bool(changed),
            )
            for text, after, read, reward, goes_on, done, changed in zip(texts, afters, *columns, strict=False)
        )
