"""Batches of random tokens in the shape of a tree, for what measures updates."""

from dataclasses import dataclass

import numpy as np
import torch

from bough.batch import Batch


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of text, after another (-1: after nothing)."""

    parent: int
    tokens: int
    trained: bool


def batch(nodes: list[Node], words: int, rng: np.random.Generator) -> Batch:
    """The tree as rows, one for each leaf; what is written is trained in the first row that has it."""
    text = [rng.integers(words, size=node.tokens) for node in nodes]
    inner = {node.parent for node in nodes}
    rows: list[list[int]] = []
    for leaf in range(len(nodes)):
        # What is not written and not answered is not read.
        if leaf in inner or (not nodes[leaf].trained and nodes[leaf].parent < 0):
            continue
        row = [leaf] if nodes[leaf].trained else [nodes[leaf].parent]
        while nodes[row[-1]].parent >= 0:
            row.append(nodes[row[-1]].parent)
        rows.append(row[::-1])
    seen: set[int] = set()
    trains: list[np.ndarray] = []
    for row in rows:
        for node in row:
            fresh = nodes[node].trained and node not in seen
            trains.append(np.full(nodes[node].tokens, fresh))
            seen.add(node)
        # A root that is written has nothing before its first token.
        first = len(trains) - len(row)
        trains[first][0] = False
    length = np.asarray([sum(nodes[node].tokens for node in row) for row in rows])
    ends = np.concatenate([[0], np.cumsum(length)])
    at = np.flatnonzero(np.concatenate(trains))
    sign = rng.choice([-1.0, 1.0], size=len(at))
    return Batch(
        tokens=torch.as_tensor(np.concatenate([text[node] for row in rows for node in row])),
        position=torch.as_tensor(np.arange(ends[-1]) - np.repeat(ends[:-1], length)),
        tree=torch.zeros(len(rows), dtype=torch.int64),
        row=torch.as_tensor(ends),
        at=torch.as_tensor(at),
        rollout_logprob=torch.full((len(at),), -float(np.log(words))),
        positive=torch.as_tensor(np.maximum(sign, 0.0)).float(),
        negative=torch.as_tensor(np.minimum(sign, 0.0)).float(),
        paths=torch.ones(len(at), dtype=torch.int64),
        inverse_length=torch.full((len(at),), 1 / len(at), dtype=torch.float64),
        equal_length=torch.ones(len(at), dtype=torch.bool),
        origin=torch.arange(len(at)),
        turn=torch.zeros(len(at), dtype=torch.int64),
        allowed=torch.full((len(at),), -1, dtype=torch.int64),
        expert=torch.zeros(len(at), dtype=torch.bool),
        on_policy=torch.ones(len(at), dtype=torch.bool),
    )
