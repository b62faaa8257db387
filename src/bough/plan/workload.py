"""The work of a trajectory tree: tokens to compute, tokens to sample, environment steps, the update."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Kind, Tree, counted, ends_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWork:
    """The work of an `ACTION` node.

    Attributes:
        parent: Index of the turn before it on its path; -1 for a first turn.
        new_tokens: Tokens to compute before sampling, without the tree's prompt: tokens that no earlier turn of the
            tree computed, and the last sampled token of the turn before.
        context_tokens: Tokens of the context before sampling, the prompt included.
        sampled_tokens: Tokens that the policy samples; 0 for a forced action.
        steps: Whether the environment executes the action; False for a piece of an action that has more pieces.
    """

    parent: int
    new_tokens: int
    context_tokens: int
    sampled_tokens: int
    steps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWork:
    """The work of one tree.

    Two episodes of one turn each, which share a prompt of 100 tokens and sample 20 tokens:

        TreeWork(prompt_tokens=100, turns=(turn, turn), episodes=2, unique_tokens=140, trained_tokens=40, pairs=9470)

    Attributes:
        prompt_tokens: Tokens of the prompt, which all episodes share.
        turns: The turns; parents come first.
        episodes: Paths of the tree that count.
        unique_tokens: Distinct token prefixes: the tokens of an update.
        trained_tokens: Sampled tokens.
        pairs: Pairs of a query and a visible key: the sum of the depths of the unique tokens.
    """

    prompt_tokens: int
    turns: tuple[TurnWork, ...]
    episodes: int
    unique_tokens: int
    trained_tokens: int
    pairs: int

    def spans(self) -> list[tuple[int, int, int]]:
        """The tokens of an update depth first, the prompt and then turns: tokens before each, its own, those trained.

        What the turns do not account for counts as the prompt's.
        """
        of_turns = sum(turn.new_tokens + turn.sampled_tokens for turn in self.turns)
        prompt = max(self.unique_tokens - of_turns, self.prompt_tokens)
        found = [(0, prompt, 0 if self.turns else self.trained_tokens)]
        after: dict[int, list[int]] = {}
        for number, turn in enumerate(self.turns):
            after.setdefault(turn.parent, []).append(number)
        pending = after.get(-1, [])[::-1]
        while pending:
            number = pending.pop()
            turn = self.turns[number]
            depth = max(0, turn.context_tokens - turn.new_tokens)
            found.append((depth, turn.new_tokens + turn.sampled_tokens, turn.sampled_tokens))
            pending += after.get(number, [])[::-1]
        return found

    @property
    def steps(self) -> int:
        """Number of environment steps."""
        return sum(turn.steps for turn in self.turns)

    @property
    def computed_tokens(self) -> int:
        """Tokens that generation computes with full prefix reuse: the prompt, new tokens, sampled tokens."""
        return self.prompt_tokens + sum(turn.new_tokens + turn.sampled_tokens for turn in self.turns)

    @property
    def longest(self) -> int:
        """Tokens of the longest context after sampling."""
        return max((turn.context_tokens + turn.sampled_tokens for turn in self.turns), default=self.prompt_tokens)


@dataclass(slots=True, kw_only=True)
class _Place:
    """The state after a node: its prefix, its depth, the new tokens since the last turn, and that turn."""

    prefix: int = 0
    depth: int = 0
    waiting: int = 0
    turn: int = -1


class _Prefixes:
    """Numbers the distinct token prefixes of a tree. Prefix 0 is the empty one."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}
        self.pairs = 0

    def __len__(self) -> int:
        return len(self._next)

    def extend(self, place: _Place, tokens: Sequence[int]) -> int:
        """Append tokens to the place; returns how many of its prefixes are new."""
        before = len(self)
        for token in tokens:
            place.depth += 1
            known = len(self)
            place.prefix = self._next.setdefault((place.prefix, token), known + 1)
            self.pairs += place.depth if len(self) > known else 0
        return len(self) - before


def tree_work(tree: Tree) -> TreeWork:
    """The work of a stored tree.

    A turn starts when the turn before it on its path is complete, and all children of a node start at the same time.
    So the branches of an explorer that waits between levels start earlier here. Seats count as one text.
    """
    prefixes = _Prefixes()
    places: list[_Place] = []
    turns: list[TurnWork] = []
    actions, ends = tree.kind == Kind.ACTION, ends_turn(tree)
    sampled = np.diff(np.append(0, np.cumsum(tree.sampled))[tree.span])
    prompt_tokens = 0
    parents: list[int] = tree.parent.tolist()
    for node, parent in enumerate(parents):
        before = places[parent] if parent >= 0 else _Place()
        edited = tree.kind[node] == Kind.EDIT
        kept = _Place() if edited else before
        place = _Place(prefix=kept.prefix, depth=kept.depth, turn=before.turn)
        tokens: list[int] = tree.tokens_of(node).tolist()
        if not actions[node]:
            place.waiting = prefixes.extend(place, tokens) + (0 if edited else before.waiting)
            if node == 0:
                prompt_tokens, place.waiting = place.depth, 0
        else:
            context, own = before.depth, int(sampled[node])
            new = before.waiting + (before.turn >= 0)
            prefixes.extend(place, tokens)
            whole = bool(ends[node])
            turns.append(
                TurnWork(parent=before.turn, new_tokens=new, context_tokens=context, sampled_tokens=own, steps=whole)
            )
            place.turn = len(turns) - 1
        places.append(place)
    return TreeWork(
        prompt_tokens=prompt_tokens,
        turns=tuple(turns),
        episodes=len(counted(tree)),
        unique_tokens=len(prefixes),
        trained_tokens=int(tree.sampled.sum()),
        pairs=prefixes.pairs,
    )
