"""Credit rules as a plain loop over paths, turns and tokens, for chains: what the fast ones are measured beside."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from bough.tree import Kind, Rewarded

Chains: TypeAlias = list[list[int]]
"""The `ACTION` nodes of each path of a tree."""
Plain: TypeAlias = Callable[[Any, Sequence[Rewarded]], list[list[float]]]
"""From a rule, whose settings are read, and a batch to an advantage for every token of every tree."""


def grpo(rule: Any, batch: Sequence[Rewarded]) -> list[list[float]]:
    """A return against the mean of its task, by the standard deviation."""
    spread = []
    for each in batch:
        paths, paid = chains(each), each.reward.tolist()
        scores = standard([sum(paid[node] for node in path) for path in paths], rule.epsilon)
        spread.append(to_tokens(each, paths, [[score] * len(path) for score, path in zip(scores, paths, strict=True)]))
    return spread


def chains(each: Rewarded) -> Chains:
    """The turns of each path, first to last."""
    tree = each.tree
    parent, kind = tree.parent.tolist(), tree.kind.tolist()
    inner, paths = set(parent), []
    for leaf in range(tree.nodes):
        if leaf in inner:
            continue
        path, node = [], leaf
        while node >= 0:
            if kind[node] == Kind.ACTION:
                path.append(node)
            node = parent[node]
        paths.append(path[::-1])
    return paths


def standard(values: list[float], epsilon: float) -> list[float]:
    """Against the mean, by the standard deviation."""
    if len(values) < 2 or len(set(values)) == 1:
        return [0.0] * len(values)
    mean = sum(values) / len(values)
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [(value - mean) / (std + epsilon) for value in values]


def to_tokens(each: Rewarded, paths: Chains, advantage: list[list[float]]) -> list[float]:
    """Every token of a turn gets what the turn gets."""
    tokens, span = [0.0] * len(each.tree.token), each.tree.span.tolist()
    for path, given in zip(paths, advantage, strict=True):
        for node, value in zip(path, given, strict=True):
            for token in range(span[node], span[node + 1]):
                tokens[token] = value
    return tokens


PLAIN: dict[str, Plain] = {"Grpo": grpo}
