"""Trees for rules on states and on branches, from the least that says what they are."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from zlib import crc32

import numpy as np
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.tree import Credited, Floats, Kind, Outcome, Rewarded, Tree, path_view

Shape: TypeAlias = Mapping[str, "Shape | float"]


def path_index(
    *paths: Sequence[str | None],
    paid: Sequence[Sequence[float]],
    ends: Sequence[str | None] = (),
    words: Sequence[Sequence[int]] = (),
    task: str = "task",
) -> Rewarded:
    """Chains by the states that they act in, a letter each, None for unknown; all begin in one prompt.

    Args:
        paths: The states; a text of each is in the info.
        paid: By path and turn.
        ends: The state each path ends in, None for unknown.
        words: By path and turn, the token that is written; all the same when not given.
        task: Id.
    """
    # The first state of a path stands below the prompt, for paths that do not begin in one state.
    nodes = [N(parent=-1, kind=PROMPT, state_key=key_of(paths[0][0]), info=said(paths[0][0]))]
    for number, path in enumerate(paths):
        place = 0
        if path[0] != paths[0][0]:
            nodes.append(N(parent=0, kind=OBSERVATION, state_key=key_of(path[0]), info=said(path[0])))
            place = len(nodes) - 1
        for turn in range(len(path)):
            last = turn == len(path) - 1
            token = words[number][turn] if words else 4
            nodes.append(N(parent=place, kind=ACTION, tokens=(token,), env_reward=paid[number][turn]))
            after = (ends[number] if ends else None) if last else path[turn + 1]
            ending = Outcome.TERMINATED if last else Outcome.OPEN
            nodes.append(
                N(
                    parent=len(nodes) - 1,
                    kind=OBSERVATION,
                    state_key=key_of(after),
                    outcome=ending,
                    info=said(after),
                )
            )
            place = len(nodes) - 1
    return rewarded(build(*nodes, task=task))


def key_of(state: str | None) -> int:
    """A key for a state by its name."""
    return 0 if state is None else crc32(state.encode()) + 1


def said(state: str | None) -> dict[str, object]:
    """What the info of a place says of its state."""
    return {} if state is None else {"text": state}


def ended(paid: float, turns: int) -> list[float]:
    """Rewards of a path that is paid at its end."""
    return [0.0] * (turns - 1) + [paid]


def branching(shape: Shape, *, tokens: int = 2, task: str = "task") -> Rewarded:
    """A tree by its turns: each name is a turn, below it what follows, or what the path came to when it ends there."""
    nodes = [N(parent=-1, kind=PROMPT)]

    def add(place: int, below: Shape) -> None:
        for name, rest in below.items():
            over = not isinstance(rest, Mapping)
            pay = float(rest) if over else 0.0  # type: ignore[arg-type]
            nodes.append(N(parent=place, kind=ACTION, tokens=[4] * tokens, env_reward=pay, info={"text": name}))
            ending, success = (Outcome.TERMINATED, pay > 0) if over else (Outcome.OPEN, None)
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending, success=success))
            if not over:
                add(len(nodes) - 1, rest)  # type: ignore[arg-type]

    add(0, shape)
    return rewarded(build(*nodes, task=task))


def named(credited: Credited) -> dict[str, float]:
    """The advantage at the first token of each turn, by the name of the turn."""
    tree = credited.tree
    acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    return {str(tree.info[node]["text"]): float(credited.advantage[tree.span[node]]) for node in acts}


def flat(*credited: Credited) -> list[float]:
    """The advantage of each turn of each counted path."""
    return [float(each) for one in credited for each in (() if one.turn_advantage is None else one.turn_advantage)]


def with_entropy(given: Rewarded, entropy: Sequence[float]) -> Rewarded:
    """The tree with these entropies at the tokens of its turns, turn by turn in the order of `steps`."""
    tree = given.tree
    node = path_view([given]).node
    columns = tree.columns()
    column: Floats = np.array(tree.entropy)
    for which, nats in zip(node.tolist(), entropy, strict=True):
        column[tree.span[which] : tree.span[which + 1]] = nats
    columns["entropy"] = column
    return Rewarded(tree=Tree(task=tree.task, info=tree.info, **columns), channels=given.channels)  # type: ignore[arg-type]


TOY: Shape = {"a": {"a1": 1, "a2": 0}, "b": {"b1": 0, "b2": 0}}
"""Two branches at the prompt, and two below each."""
