# ruff: noqa: ARG001
"""LATS, and what its released code gets wrong."""

import random

import pytest
from tests.explore.stage import World
from tests.search.talk import actions, answer, letter, questions, search, talk

from bough.env import InProcessHost
from bough.search import SearchNode, Uct
from bough.searches.lats import lats
from bough.tree import Kind, Outcome, Source


def test_it_rates_with_the_judge_and_agreement() -> None:
    engine = talk(letter, lambda read: "yes" if read.rpartition("> ")[2].startswith("b") else "no")
    tree = search(engine, lats(weight=0.75, rounds=1))
    found = actions(tree)
    copies = {action: found[action]["copies"] for action in "ab"}
    assert sum(copies.values()) == 5
    for action in "ab":
        assert found[action]["rating"] == pytest.approx(0.75 * (action == "b") + 0.25 * copies[action] / 5)
    assert found["b"]["visits"] == 1, "the path went on from the best child"
    assert found["a"]["visits"] == 0
    assert found["b"]["value"] == -1.0, "and failed"
    assert tree.visits[0] == 1


@pytest.mark.parametrize("liked", ["a", "b"])
def test_the_judge_decides_where_paths_go_on(liked: str) -> None:
    """The policy plays on with what it is; the judge alone says from where."""
    engine = talk(letter, lambda read: "yes" if read.rpartition("> ")[2].startswith(liked) else "no")
    tree = search(engine, lats(weight=1.0, rounds=1), host=InProcessHost(env=World(length=9)))
    visited = [action for action, info in actions(tree).items() if info["visits"]]
    assert visited == [liked]


def test_failures_are_reflected_on_and_told() -> None:
    """The policy does what is right only when it was told why it failed."""

    def act(read: str, luck: random.Random) -> str:
        return "a" if "say a" in read else "b"

    engine = talk(act, lambda read: "say a" if "did not solve" in read else "on track")
    tree = search(engine, lats(width=2, rounds=8), host=InProcessHost(env=World(length=2)))
    # A success needs a at the first turn, where nothing had failed yet: what is found is a at the second.
    assert "ba" in actions(tree)
    assert actions(tree)["ba"]["source"] == Source.TEACHER
    assert any("did not solve" in question for question in questions(engine))
    early = [question for question in questions(engine) if "did not solve" in question]
    assert len(early) == len(set(early)), "no failure is asked about twice"


def test_a_mean_is_not_divided_again() -> None:
    root = SearchNode(number=0, parent=None, visits=3)
    node = SearchNode(number=1, parent=root, visits=3, q=1.0)
    assert Uct(c=0.0)(node) == 1.0, "the released code has .3333"


def test_it_ends_when_every_child_of_the_root_has_failed() -> None:
    """The released code selects anew for ever."""
    engine = talk(lambda _, luck: luck.choice("bc"), lambda _: "no")
    tree = search(engine, lats(), host=InProcessHost(env=World(length=1)))
    assert [info["visits"] for info in actions(tree).values()] == [1] * len(actions(tree))
    assert set(tree.outcome[tree.kind == Kind.OBSERVATION].tolist()) == {Outcome.TERMINATED}
    assert tree.counts.turns == len(actions(tree)) == 2
    assert answer(tree) in "bc"


def test_siblings_begin_in_the_state_of_their_parent() -> None:
    """The released code steps one environment for all of them."""
    engine = talk(letter, lambda _: "no")
    tree = search(engine, lats(rounds=3), host=InProcessHost(env=World(length=9)))
    for node in range(tree.nodes):
        above = int(tree.parent[node])
        if tree.kind[node] == Kind.OBSERVATION:
            before = tree.info[int(tree.parent[above])]["text"]
            assert tree.info[node]["text"] == f"{before}{tree.info[above]['text']}".lstrip(".")


def test_a_success_that_a_rating_finds_ends_it() -> None:
    engine = talk(letter, lambda _: "no")
    tree = search(engine, lats(), host=InProcessHost(env=World(length=1)))
    assert answer(tree) == "a"
    assert actions(tree)["a"]["value"] == 1.0
