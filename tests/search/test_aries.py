"""A majority of samples decides each turn."""

import random

import pytest
from tests.explore.stage import World
from tests.search.talk import actions, answer, search, talk

from bough.env import Branching, InProcessHost
from bough.needs import FORKS, needs_of
from bough.search import Aries


@pytest.mark.parametrize(("votes", "found"), [(1, "bbb"), (5, "aaa")])
def test_the_most_frequent_action_is_done_and_not_the_first(votes: int, found: str) -> None:
    said = iter("baaba" * 3 if votes == 5 else "bbb")

    def act(read: str, luck: random.Random) -> str:
        del read, luck
        return next(said)

    tree = search(
        talk(act, lambda _: "yes"),
        Aries(votes=votes),
        host=InProcessHost(env=World(branching=Branching.NONE)),
    )
    assert answer(tree) == found
    assert tree.counts.turns == 3
    if votes == 5:
        assert {actions(tree)[name]["rating"] for name in "ab"} == {2.0, 3.0}


def test_it_steps_no_state_twice() -> None:
    assert FORKS not in needs_of(Aries())
    with pytest.raises(ValueError, match=r"Aries\.votes: got 0"):
        Aries(votes=0)
