"""Shapley values: the share of each member of a set in the value of the whole set."""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import factorial
from typing import TypeAlias

Members: TypeAlias = frozenset[int]


def subsets(count: int) -> list[Members]:
    """All 2 ** count subsets of the members 0 to count - 1."""
    return [frozenset(each) for size in range(count + 1) for each in combinations(range(count), size)]


def sampled_orders(count: int, samples: int, seed: int) -> list[tuple[int, ...]]:
    """Random orders of the members 0 to count - 1."""
    rng = random.Random(seed)
    return [tuple(rng.sample(range(count), count)) for _ in range(samples)]


def prefixes(orders: Sequence[Sequence[int]]) -> list[Members]:
    """The subsets that `sampled_shapley` needs, each once: the first members of each order."""
    found = (frozenset(order[:size]) for order in orders for size in range(len(order) + 1))
    return list(dict.fromkeys(found))


def exact_shapley(count: int, value: Mapping[Members, float]) -> list[float]:
    """[count]: the mean over all orders of what a member adds to the members before it.

    Their sum is the value of all less that of none. With the values 0 .25, a .5, b .25, c .25, ab .9, ac .5, bc .3 and
    abc 1 they are .466667, .241667 and .041667.

    Args:
        count: Number of members.
        value: The value of each of `subsets(count)`.
    """

    def share(member: int) -> float:
        others = [each for each in value if member not in each]
        return sum(
            factorial(len(each)) * factorial(count - len(each) - 1) * (value[each | {member}] - value[each])
            for each in others
        ) / factorial(count)

    return [share(member) for member in range(count)]


def sampled_shapley(orders: Sequence[Sequence[int]], value: Mapping[Members, float]) -> list[float]:
    """[count]: the mean over some orders; its error falls with the square root of their number.

    Args:
        orders: One or more orders of the members.
        value: The value of each of `prefixes(orders)`.
    """
    total = [0.0] * len(orders[0])
    for order in orders:
        for size, member in enumerate(order):
            before = frozenset(order[:size])
            total[member] += value[before | {member}] - value[before]
    return [each / len(orders) for each in total]
