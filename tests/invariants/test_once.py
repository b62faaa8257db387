"""Invariant 1: each sampled token is trained exactly once, after exactly the tokens that the engine read."""

import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build, credited, random_tree, seeds

from bough.batch import Batch, pack
from bough.tree import Outcome, Tree, context, token_node, trained


def conditions(batch: Batch) -> dict[float, list[tuple[int, list[int]]]]:
    """For each behaviour log-probability, which no two tokens have in common: the token, and all before it."""
    seen: dict[float, list[tuple[int, list[int]]]] = {}
    for rollout_logprob, at in zip(batch.rollout_logprob.tolist(), batch.at.tolist(), strict=True):
        start = at - int(batch.position[at])
        seen.setdefault(rollout_logprob, []).append((int(batch.tokens[at]), batch.tokens[start:at].tolist()))
    return seen


@given(seeds())
def test_random_trees(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, task=str(i), edits=0.5) for i in range(2)]
    wanted: dict[float, list[tuple[int, list[int]]]] = {}
    for tree in trees:
        for at in np.flatnonzero(trained(tree)):
            node = int(token_node(tree)[at])
            before = [*context(tree, node).tolist(), *tree.token[tree.span[node] : at].tolist()]
            wanted[float(tree.logprob[at])] = [(int(tree.token[at]), before)]
    assert conditions(pack([credited(tree, rng) for tree in trees])) == wanted


def windowed(rng: np.random.Generator, window: int, turns: int) -> tuple[Tree, dict[float, tuple[int, list[int]]]]:
    """A tree whose context keeps the last `window` turns, and for each sampled token what was read before it."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(0, 1))]
    read: dict[float, tuple[int, list[int]]] = {}

    def grow(place: int, text: list[int], past: list[tuple[list[int], list[int]]]) -> None:
        for _ in range(2 if rng.random() < 0.4 else 1):
            action = rng.integers(2, 13, size=int(rng.integers(1, 4))).tolist()
            logprob = rng.uniform(-2.0, -0.1, size=len(action)).astype(np.float32).tolist()
            read.update(
                {p: (token, text + action[:i]) for i, (p, token) in enumerate(zip(logprob, action, strict=True))}
            )
            nodes.append(N(parent=place, kind=ACTION, tokens=action, logprob=logprob))
            acted, seen = len(nodes) - 1, rng.integers(2, 13, size=2).tolist()
            if len(past) + 1 == turns:
                nodes.append(N(parent=acted, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED))
                continue
            now = [*past, (action, seen)]
            if len(now) <= window:
                nodes.append(N(parent=acted, kind=OBSERVATION, tokens=seen))
                after = text + action + seen
            else:
                after = [0, 1, *(token for turn in now[-window:] for part in turn for token in part)]
                nodes.append(N(parent=acted, kind=EDIT, tokens=after))
            grow(len(nodes) - 1, after, now)

    grow(0, [0, 1], [])
    return build(*nodes), read


@pytest.mark.parametrize("window", [1, 2, 64])
@given(seeds())
def test_windows(window: int, rng: np.random.Generator) -> None:
    tree, read = windowed(rng, window, turns=5)
    batch = pack([credited(tree, rng)])
    assert conditions(batch) == {rollout_logprob: [one] for rollout_logprob, one in read.items()}
    starts = (tree.kind == EDIT).sum()
    assert (starts == 0) == (window == 64)
