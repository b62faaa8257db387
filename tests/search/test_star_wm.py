"""An action is refined after a simulation of it."""

import random
from dataclasses import replace

import pytest
from tests.explore.stage import Letters, World, grow, runner
from tests.search.talk import answer, questions, search, talk

from bough.engine import InjectedFault
from bough.env import Branching, InProcessHost
from bough.needs import FORKS, needs_of
from bough.rollout import RoleModel
from bough.search import SimulateAndRefine, StarWm

ONCE = InProcessHost(env=World(branching=Branching.NONE))


def act(read: str, luck: random.Random) -> str:
    """Wants b; does a after reading that b would lead into mud."""
    del luck
    return "a" if "It would probably lead to:\nmud" in read else "b"


def world(read: str) -> str:
    return "mud" if read.rpartition("> ")[2].startswith("b") else "gold"


def test_the_prediction_changes_what_is_done() -> None:
    engine = talk(act, world)
    tree = search(engine, StarWm(), host=ONCE)
    assert answer(tree) == "aaa"
    assert len(questions(engine)) == 3, "one simulation a turn"
    assert tree.counts.turns == 3
    careless = search(talk(act, lambda _: "gold"), StarWm(), host=ONCE)
    assert answer(careless) == "bbb"


def test_a_refined_action_is_simulated_in_turn() -> None:
    engine = talk(act, world)
    search(engine, StarWm(expand=SimulateAndRefine(rounds=2)), host=ONCE)
    assert [read.rpartition("> ")[2][0] for read in questions(engine)[:2]] == ["b", "a"]


def test_the_model_of_the_role_predicts() -> None:
    policy, other = talk(act, lambda _: "gold"), talk(act, world)
    place = runner(policy, ONCE, max_tokens=200)
    models = {"world": RoleModel(engine=other, renderer=Letters(), name="world")}
    place = replace(place, agent=replace(place.agent, models=models))
    (tree,) = grow(place, StarWm(expand=SimulateAndRefine(role="world"))).trees
    assert answer(tree) == "aaa", "the policy itself would predict gold"
    assert (len(questions(policy)), len(questions(other))) == (0, 3)


def test_without_a_prediction_the_proposal_is_done() -> None:
    tree = search(talk(act, lambda _: InjectedFault.FAULT), StarWm(), host=ONCE)
    assert answer(tree) == "bbb"
    assert tree.counts.unanswered == 3


def test_needs_and_mistakes() -> None:
    assert FORKS not in needs_of(StarWm())
    assert needs_of(StarWm(expand=SimulateAndRefine(role="world"))) != needs_of(StarWm())
    with pytest.raises(ValueError, match=r"SimulateAndRefine\.rounds: got 0"):
        SimulateAndRefine(rounds=0)
    with pytest.raises(ValueError, match=r"SimulateAndRefine\.text"):
        SimulateAndRefine(text="{nothing}")
