"""Credit by what a search thought of places."""

import numpy as np
import pytest
from tests.credit.grown import TOY, branching, flat, named
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Searched
from bough.needs import value_head
from bough.tree import Outcome, Rewarded

END = Outcome.TERMINATED


def searched() -> Rewarded:
    """Two nodes of a search below the prompt, a path that was played out below the first, one that nobody valued."""
    return rewarded(
        build(
            N(parent=-1, kind=PROMPT, value=0.65, visits=3),
            N(parent=0, kind=ACTION, value=0.8, rating=0.4, visits=2, info={"text": "a"}),
            N(parent=1, kind=OBSERVATION),
            N(parent=2, kind=ACTION, info={"text": "out"}, env_reward=1.0),
            N(parent=3, kind=OBSERVATION, outcome=END),
            N(parent=0, kind=ACTION, value=0.2, visits=1, info={"text": "b"}),
            N(parent=5, kind=OBSERVATION, outcome=Outcome.TRUNCATED),
            N(parent=0, kind=ACTION, info={"text": "never", "prior": 0.1}),
        )
    )


def test_a_turn_is_worth_what_the_search_thought_less_its_place() -> None:
    told = named(Searched()([searched()])[0])
    assert told == pytest.approx({"a": 0.15, "out": 0.2, "b": -0.45, "never": 0.0})
    told = named(Searched(relative=False)([searched()])[0])
    assert told == pytest.approx({"a": 0.8, "out": 1.0, "b": 0.2, "never": 0.0})


def test_a_rating_can_have_a_share() -> None:
    told = named(Searched(relative=False, rating_weight=0.5)([searched()])[0])
    assert told["a"] == pytest.approx(0.6)
    assert told["b"] == pytest.approx(0.2), "nobody rated it"


def test_the_goal_of_a_head_is_the_worth_of_the_place_that_is_read() -> None:
    rule = Searched(head="value")
    assert rule.needs == {value_head("value")}
    (credited,) = rule([searched()])
    goal = credited.value_targets["value"]
    assert goal[[1, 3, 5]] == pytest.approx([0.65, 0.8, 0.65])
    assert np.isnan(goal[[0, 2, 4, 7]]).all()


def test_without_a_search_it_is_the_mean_return() -> None:
    (credited,) = Searched()([branching(TOY)])
    assert flat(credited) == pytest.approx([0.25, 0.5, 0.25, -0.5, -0.25, 0, -0.25, 0])


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"Searched\.rating_weight: got 2"):
        Searched(rating_weight=2.0)
