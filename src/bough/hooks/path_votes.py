"""Votes of a task's paths on the answer: confidences, labels of subgroups, and the size of a subgroup."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.tree import (
    Bools,
    Floats,
    Ints,
    Kind,
    Outcome,
    Ternary,
    Tree,
    counted,
    ends_turn,
    path,
    sum_to_root,
    text_in,
    turn_start,
)
from bough.tree.endings import last_action


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathVotes:
    """The P counted paths of a task, in the order of its trees.

    Attributes:
        tree: [P] int64, the tree of each path.
        leaf: [P] int64, its last node.
        answer: [P] int64, the number of its answer among the different ones of the task; -1 without an answer.
        confidence: [P] float64, >= 0, the weight of its vote.
    """

    tree: Ints
    leaf: Ints
    answer: Ints
    confidence: Floats

    def agrees(self, label: Ints) -> Bools:
        """[P]: whether each path has an answer and it is the label [P]."""
        return (self.answer >= 0) & (self.answer == label)


def path_votes(trees: Sequence[Tree], confidence: Literal["entropy", "probability", "none"], pattern: str) -> PathVotes:
    """The paths of the trees of one task.

    Args:
        trees: The trees.
        confidence: Of a path, the mean over its turns: of exp(-mean entropy) or of the geometric mean probability of
            the turn's sampled tokens; or 1.
        pattern: Regular expression of the answer in the text of the last action; "" for all of it.
    """
    owner, ends = list[int](), list[int]()
    texts, weights = list[str | None](), list[float]()
    for number, tree in enumerate(trees):
        turn = np.ones(tree.nodes) if confidence == "none" else _turns(tree, confidence)
        last = last_action(tree)
        for leaf in counted(tree).tolist():
            owner.append(number)
            ends.append(leaf)
            texts.append(_answer(tree, leaf, int(last[leaf]), pattern))
            nodes = path(tree, leaf)
            acted = turn[nodes[(tree.kind[nodes] == Kind.ACTION) & ~np.isnan(turn[nodes])]]
            weights.append(float(acted.mean()) if len(acted) else 0.0)
    known = {text: number for number, text in enumerate(sorted({text for text in texts if text is not None}))}
    return PathVotes(
        tree=np.asarray(owner, dtype=np.int64),
        leaf=np.asarray(ends, dtype=np.int64),
        answer=np.asarray([-1 if text is None else known[text] for text in texts], dtype=np.int64),
        confidence=np.asarray(weights, dtype=np.float64),
    )


def label(answer: Ints, confidence: Floats) -> int:
    """The answer with the largest sum of confidences, the first of equal ones; -1 without any.

    Args:
        answer: [n] int64; votes with -1 do not count.
        confidence: [n], of the same votes.
    """
    votes = answer >= 0
    if not votes.any():
        return -1
    # Answers without a vote are no candidates, also where all confidences are 0.
    voted = np.unique(answer[votes])
    return int(voted[np.argmax(np.bincount(answer[votes], confidence[votes])[voted])])


def winners(votes: PathVotes, size: int, share: float, rng: np.random.Generator) -> Ints:
    """[P] int64: the label of each path's subgroup of `size` paths, by `share` of all paths, drawn for each subgroup.

    The one subgroup of `share` 1, or of a single path, has all votes.
    """
    paths = len(votes.leaf)
    voters = max(1, round(share * paths))
    labels = np.full(paths, -1, dtype=np.int64)
    for start in range(0, paths, size):
        drawn = np.sort(rng.choice(paths, voters, replace=False))
        labels[start : start + size] = label(votes.answer[drawn], votes.confidence[drawn])
    return labels


def best_size(rates: Sequence[float], counts: Sequence[float], reward_weight: float) -> int:
    """The index of the size nearest to the best of both on the Pareto front; the first of equal ones.

    Args:
        rates: Share of paid paths, by size.
        counts: Number of different labels of a task, by size.
        reward_weight: Weight of the first, from 0 to 1.
    """
    both = np.column_stack([rates, counts])
    front = [
        place
        for place, one in enumerate(both)
        if not any((other >= one).all() and (other > one).any() for other in both)
    ]
    low, high = both[front].min(axis=0), both[front].max(axis=0)
    short = (high - both[front]) / np.where(high > low, high - low, 1.0)
    distance = np.sqrt(short**2 @ np.asarray([reward_weight, 1 - reward_weight]))
    return front[int(np.argmin(distance))]


def _turns(tree: Tree, confidence: Literal["entropy", "probability"]) -> Floats:
    """[N]: the confidence of the turn that ends at each node, by its sampled tokens; nan without any."""
    nats = tree.entropy if confidence == "entropy" else -tree.logprob
    owner = np.repeat(np.arange(tree.nodes), np.diff(tree.span))
    known = ~np.isnan(nats) & (tree.kind == Kind.ACTION)[owner]
    count = _of_turns(tree, np.bincount(owner[known], minlength=tree.nodes))
    total = _of_turns(tree, np.bincount(owner[known], nats[known], minlength=tree.nodes))
    return np.where(count > 0, np.exp(-total / np.maximum(count, 1)), np.nan)


def _of_turns(tree: Tree, value: Floats | Ints) -> Floats:
    """[N]: the sum of `value` over the nodes of the turn that ends at each node; nan elsewhere."""
    total, start = sum_to_root(tree, value), turn_start(tree)
    return np.where(ends_turn(tree), total - total[start] + value[start], np.nan)


def _answer(tree: Tree, leaf: int, action: int, pattern: str) -> str | None:
    """The answer of a path, in lower case and without blanks around it; None without one."""
    if tree.outcome[leaf] != Outcome.TERMINATED or tree.well_formed[action] == Ternary.NO:
        return None
    text = text_in(tree.info[action])
    if text is None:
        return None
    if pattern:
        found = re.search(pattern, text)
        if found is None:
            return None
        text = found.group(found.lastindex or 0)
    return text.strip().lower() or None
