"""Branches that are malformed or off the topic are not executed."""

import random

import numpy as np
from tests.search.talk import search, talk

from bough.explore import FullTree, OnTopic
from bough.rollout import Limits
from bough.tree import Kind, Tree


def texts(tree: Tree, *, executed: bool) -> set[str]:
    """The actions that were, or were not, executed."""
    parents = {*tree.parent.tolist()}
    acts = [int(node) for node in np.flatnonzero(tree.kind == Kind.ACTION)]
    return {str(tree.info[node]["text"]) for node in acts if (node in parents) == executed}


def judge(read: str) -> str:
    return "yes" if "do this next:\na" in read else "no"


def act(read: str, luck: random.Random) -> str:
    del read
    return luck.choice(["a", "b", "a\nb"])


def grown(explorer: FullTree) -> Tree:
    return search(talk(act, judge), explorer, limits=Limits(turns=1))


def test_only_actions_on_the_topic_are_executed() -> None:
    tree = grown(FullTree(width=12, depth=1, keep=8, min_quality=2.0, quality=OnTopic()))
    assert texts(tree, executed=True) == {"a"}
    assert {"b"} <= texts(tree, executed=False)
    free = grown(FullTree(width=12, depth=1, quality=OnTopic()))
    assert "b" in texts(free, executed=True)


def test_the_best_are_executed_where_none_is_good_enough() -> None:
    tree = search(
        talk(lambda read, luck: "b" if read else str(luck), judge),
        FullTree(width=3, depth=1, keep=2, min_quality=2.0, quality=OnTopic()),
        limits=Limits(turns=1),
    )
    assert texts(tree, executed=True) == {"b"}
