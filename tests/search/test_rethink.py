# ruff: noqa: ARG001, ARG005
"""Actions that are written anew when it is known what came of them."""

import random

from tests.explore.stage import World
from tests.search.talk import actions, answer, questions, search, talk

from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import Best, Rethink, Sample, Search
from bough.searches.rethink import rethink
from bough.tree import RolloutCounts, Source

SHORT = InProcessHost(env=World(length=1))


def learns(read: str, luck: random.Random) -> str:
    """Writes b; and what the critique names when there is one."""
    return read.rpartition("take ")[2][0] if "take " in read else "b"


def test_what_failed_is_written_again_from_what_came_of_it() -> None:
    engine = talk(learns, lambda read: "take a")
    tree = search(engine, Search(select=Best(), expand=Sample(width=1), rate=Rethink()), host=SHORT)
    assert answer(tree) == "a"
    (told,) = [
        "".join(map(chr, each.prompt_tokens))
        for each in engine.requests
        if "before" in "".join(map(chr, each.prompt_tokens))
    ]
    assert "You did this before:\nb\nWhat came of it: b\ntake a\nWrite it anew" in told
    assert actions(tree)["a"]["source"] == Source.TEACHER
    assert tree.counts == RolloutCounts(turns=2, tokens=tree.counts.tokens, calls=3)
    plain = search(talk(learns, lambda _: ""), Search(select=Best(), expand=Sample(width=1)), host=SHORT)
    assert answer(plain) == "b"


def test_once_only() -> None:
    """What fails again is not written a third time, and the search ends."""
    engine = talk(learns, lambda read: "take c")
    tree = search(engine, rethink(width=1), host=SHORT)
    assert set(actions(tree)) == {"b", "c"}
    assert len(questions(engine)) == 1
    assert answer(tree) == "c", "it took the place of the first"


def test_a_success_and_an_open_place_are_left_alone() -> None:
    for length in (1, 2):
        engine = talk(lambda *_: "a", lambda _: "never")
        tree = search(engine, rethink(width=1, rounds=1), host=InProcessHost(env=World(length=length)))
        assert answer(tree) == "a" * length
        assert not questions(engine)


def test_the_search_goes_on_below_what_was_rewritten() -> None:
    """Of two turns the second fails and is rewritten; the place above, of which all was known, is open again."""
    engine = talk(lambda read, luck: "a" if "take" in read or read.endswith("{.}") else "b", lambda _: "take a")
    tree = search(engine, rethink(width=1, rounds=6), host=InProcessHost(env=World(length=2)))
    assert answer(tree) == "aa"


def test_budgets() -> None:
    for calls in range(1, 12):
        engine = talk(learns, lambda _: "take c")
        tree = search(engine, rethink(width=2), host=SHORT, limits=Limits(tree_calls=calls))
        assert len(engine.requests) <= calls
        assert tree.answer.sum() == 1
