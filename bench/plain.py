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


def gigpo(rule: Any, batch: Sequence[Rewarded]) -> list[list[float]]:
    """Returns in the task, and discounted returns to go among the turns that were taken in the same state."""
    spread = []
    for each in batch:
        paths, paid = chains(each), each.reward.tolist()
        scores = standard([sum(paid[node] for node in path) for path in paths], rule.epsilon)
        keys, parent = each.tree.state_key.tolist(), each.tree.parent.tolist()
        advantage = [[score] * len(path) for score, path in zip(scores, paths, strict=True)]
        same: dict[int, list[tuple[int, int, float]]] = {}
        for number, path in enumerate(paths):
            ahead = 0.0
            for turn in reversed(range(len(path))):
                ahead = paid[path[turn]] + rule.discount * ahead
                same.setdefault(keys[parent[path[turn]]], []).append((number, turn, ahead))
        for members in same.values():
            for (number, turn, _), score in zip(members, standard([m[2] for m in members], rule.epsilon), strict=True):
                advantage[number][turn] += rule.weight * score
        spread.append(to_tokens(each, paths, advantage))
    return spread


def turn_ppo(rule: Any, batch: Sequence[Rewarded]) -> list[list[float]]:
    """Generalised advantages over turns, whitened over the batch."""
    found: list[tuple[Chains, list[list[float]]]] = []
    for each in batch:
        paths, paid, span = chains(each), each.reward.tolist(), each.tree.span.tolist()
        value = each.estimates["value"].tolist()
        advantage = []
        for path in paths:
            worth = [value[span[node]] for node in path]
            advantage.append(generalised([paid[node] for node in path], worth, rule.discount, rule.lam))
        found.append((paths, advantage))
    whole = iter(standard([value for _, some in found for path in some for value in path], 1e-8))
    white = [(paths, [[next(whole) for _ in path] for path in some]) for paths, some in found]
    return [to_tokens(each, paths, advantage) for each, (paths, advantage) in zip(batch, white, strict=True)]


def gae(rule: Any, batch: Sequence[Rewarded]) -> list[list[float]]:
    """Generalised advantages over tokens, whitened over the batch."""
    found: list[list[tuple[int, float]]] = []
    for each in batch:
        paid, span, value = each.reward.tolist(), each.tree.span.tolist(), each.estimates["value"].tolist()
        advantage: list[tuple[int, float]] = []
        for path in chains(each):
            tokens = [token for node in path for token in range(span[node], span[node + 1])]
            reward = [0.0] * len(tokens)
            end = 0
            for node in path:
                end += span[node + 1] - span[node]
                reward[end - 1] = paid[node]
            worth = generalised(reward, [value[token] for token in tokens], rule.discount, rule.lam)
            advantage += zip(tokens, worth, strict=True)
        found.append(advantage)
    whole = iter(standard([value for some in found for _, value in some], 1e-8))
    spread = [[0.0] * len(each.tree.token) for each in batch]
    for tokens, some in zip(spread, found, strict=True):
        for token, _ in some:
            tokens[token] = next(whole)
    return spread


def generalised(reward: list[float], value: list[float], discount: float, lam: float) -> list[float]:
    """From the last step to the first."""
    advantage, after, ahead = [0.0] * len(reward), 0.0, 0.0
    for step in reversed(range(len(reward))):
        ahead = reward[step] + discount * after - value[step] + discount * lam * ahead
        after = value[step]
        advantage[step] = ahead
    return advantage


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


PLAIN: dict[str, Plain] = {"Grpo": grpo, "Gigpo": gigpo, "TurnPpo": turn_ppo, "Gae": gae}
