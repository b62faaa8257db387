# ruff: noqa: ARG005
"""Searches in which the engine's word decides, and released defects that they do not have."""

import asyncio
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import Letters, World, grow, runner
from tests.search.talk import actions, answer, judgements, letter, questions, search, talk

from bough.env import InProcessHost
from bough.rollout import Limits, RoleModel
from bough.search import Hybrid, JudgeAction, KindHint, Sample, SearchNode
from bough.searches.agent_q import agent_q
from bough.searches.ats import ats
from bough.searches.code_tree import code_tree
from bough.searches.cr_planner import cr_planner
from bough.searches.i_mcts import i_mcts
from bough.searches.spar import spar
from bough.searches.web_pilot import web_pilot
from bough.tree import Task

FAR = InProcessHost(env=World(length=9))


def listed(read: str) -> list[str]:
    """The numbered actions of a question."""
    return [line[3:] for line in read.splitlines() if line[1:3] == ". "]


def test_hybrid_scores_are_those_of_the_card() -> None:
    root = SearchNode(number=0, parent=None, visits=3)
    seen = SearchNode(number=1, parent=root, visits=2, q=0.6, rating=0.9)
    new = SearchNode(number=2, parent=root, rating=0.7)
    assert (round(Hybrid()(seen), 4), round(Hybrid()(new), 4)) == (2.1096, 5.3875)
    assert Hybrid()(SearchNode(number=0, parent=None, rating=0.7)) == 0.7, "as released nan"
    assert Hybrid(c=0.0, share=0.25)(seen) == pytest.approx(0.25 * 0.9 + 0.75 * 0.6)
    assert Hybrid(c=0.0, share=0.25)(new) == 0.7
    assert Hybrid(c=0.0)(SearchNode(number=3, parent=root)) == 0.0
    with pytest.raises(ValueError, match=r"Hybrid\.rating_visits: got 0\.0"):
        Hybrid(rating_visits=0.0)
    with pytest.raises(ValueError, match=r"Hybrid\.share: got 2\.0"):
        Hybrid(share=2.0)


@pytest.mark.parametrize("liked", ["a", "b"])
def test_agent_q_goes_first_where_its_critic_says(liked: str) -> None:
    def rank(read: str) -> str:
        found = listed(read)
        return ", ".join(str(found.index(each) + 1) for each in sorted(found, key=lambda each: each != liked))

    engine = talk(letter, rank)
    tree = search(engine, agent_q(), host=FAR, limits=Limits(tree_turns=18))
    visited = [action for action, info in actions(tree).items() if len(action) == 1 and info["visits"]]
    assert visited == [liked]


def test_i_mcts_waits_for_the_judgement_of_every_child() -> None:
    """As released the children's values stay 0, since nobody waits for them."""
    engine = talk(letter, lambda read: "yes" if "next:\nb\n" in read else "on track")
    tree = search(engine, i_mcts(rounds=2), host=FAR)
    ratings = {action: info["rating"] for action, info in actions(tree).items()}
    assert ratings
    assert all(rating == (1.0 if action[-1] == "b" else 0.5) for action, rating in ratings.items())
    assert [action for action, info in actions(tree).items() if info["visits"]] == ["b"]


@pytest.mark.parametrize(("liked", "other"), [("a", "b"), ("b", "a")])
def test_web_pilot_keeps_the_best_that_it_found(liked: str, other: str) -> None:
    def reward(read: str) -> str:
        good = read.partition("> ")[2].startswith(liked)
        return "no" if "yes or no" in read else "9/10" if "0 to 10" in read and good else "1"

    engine = talk(lambda read, luck: other if f"- {liked}" in read else liked, reward)
    tree = search(engine, web_pilot(width=2), host=FAR, limits=Limits(tree_turns=8))
    found = actions(tree)
    assert (found[liked]["value"], found[other]["value"]) == (0.9, 0.1)
    assert tree.value[0] == 0.9, "the best below, not the mean"
    deeper = {action[0] for action in found if len(action) == 2}
    assert deeper == {liked}


def test_spar_refines_until_most_judgements_say_yes() -> None:
    """What the released code does with .2, .4, 0, of which two are kept, then .4, .6, .8 below the best: .8 it is."""
    values = {"a": 0.2, "b": 0.4, "c": 0.0, "ba": 0.4, "bb": 0.6, "bc": 0.8}
    say, asked = judgements({past: round(5 * value) for past, value in values.items()})
    engine = talk(lambda _, luck: luck.choice("abc"), say)
    tree = search(engine, spar(width=12, keep=2), host=FAR)
    found = actions(tree)
    assert {action: found[action]["score"] for action in values} == pytest.approx(values)
    assert answer(tree) == "bc"
    assert found["bc"]["score"] == 0.8
    assert {action[0] for action in found if len(action) == 2} == {"a", "b"}, "c is given up"
    assert not [action for action in found if len(action) > 2], "one above .5 ends it"
    assert set(asked.values()) == {5}


@pytest.mark.parametrize(("votes", "levels"), [(2, 2), (3, 1)])
def test_half_of_the_judgements_are_no_majority_for_spar(votes: int, levels: int) -> None:
    say, _ = judgements({"a": votes})
    tree = search(talk(lambda *_: "a", say), spar(n=4, depth=2), host=FAR)
    assert answer(tree) == "a"
    assert max(map(len, actions(tree))) == levels


@pytest.mark.parametrize(("first", "count"), [(None, 6), (2, 2)])
def test_spar_samples_so_many_first_answers(first: int | None, count: int) -> None:
    engine = talk(letter, lambda _: "no")
    search(engine, spar(width=6, first=first, depth=1), host=FAR)
    assert len(engine.requests) - len(questions(engine)) == count


def test_the_model_of_the_role_judges_and_criticises_for_spar() -> None:
    policy, other = (talk(letter, lambda read: "refine it" if "what is wrong" in read else "no") for _ in range(2))
    place = runner(policy, FAR, max_tokens=200)
    models = {"judge": RoleModel(engine=other, renderer=Letters(), name="judge")}
    grow(replace(place, agent=replace(place.agent, models=models)), spar(width=2, depth=2, role="judge"))
    assert questions(policy) == []
    assert {"what is wrong" in read for read in questions(other)} == {True, False}


def test_spar_answers_with_the_best_place_when_none_is_good_enough() -> None:
    values = {"a": 0.4, "b": 0.2}
    say, _ = judgements({past: round(5 * value) for past, value in values.items()})
    tree = search(talk(letter, say), spar(width=6), host=FAR)
    assert answer(tree) == "a", "what was written below it is worse"
    assert max(len(action) for action in actions(tree)) == 3


@pytest.mark.parametrize(("kind", "liked"), [("1", "a"), ("4", "b")])
def test_one_path_where_the_engine_selects_the_kind_and_the_step(kind: str, liked: str) -> None:
    """The first answer is the kind of step, which changes what the policy writes; the second rates what it wrote."""

    def act(read: str, luck: random.Random) -> str:
        return luck.choice("ax" if "step: reason" in read else "bx")

    def critic(read: str) -> str:
        return kind if "its number" in read else "no" if "next:\nx\n" in read else "yes"

    engine = talk(act, critic)
    how = replace(cr_planner(kinds=("a",)), expand=Sample(width=6, hint=KindHint()), rate=JudgeAction())
    tree = search(engine, how)
    assert answer(tree) == liked * 3
    assert tree.counts.turns == 3


def test_a_written_search_is_one_path() -> None:
    engine = talk(lambda read, _: "a" if "write a search" in read else "b", lambda _: "never")
    tree = search(engine, ats())
    assert answer(tree) == "aaa"
    assert (len(actions(tree)), questions(engine)) == (3, [])


@pytest.mark.parametrize("make", [agent_q, code_tree, i_mcts, web_pilot, spar, ats], ids=lambda make: make.__name__)
def test_budgets_are_exact(make: object) -> None:
    for calls in (1, 2, 3, 5, 8, 13, 21):
        engine = talk(letter, lambda _: "1, 2 yes")
        tree = search(engine, make(), host=FAR, limits=Limits(tree_calls=calls, turns=4))  # type: ignore[operator]
        assert len(engine.requests) <= calls
        assert tree.answer.sum() == 1
        values = tree.value[~np.isnan(tree.value)].tolist()
        assert all(math.isfinite(value) for value in values)  # type: ignore[arg-type]


def test_spar_refines_the_answer_with_which_a_task_begins() -> None:
    """The first critique is of that answer, and the policy, told of it, gives the better one."""

    def say(read: str) -> str:
        wrong = read.rpartition("> ")[2].startswith("b")
        return "not b" if "what is wrong" in read else "no" if wrong else "yes"

    place = runner(talk(lambda read, _: "a" if "not b" in read else "b", say), FAR, max_tokens=100)
    (tree,) = asyncio.run(place.run(spar(), [Task(id="t", start=("b",))], seed=0)).trees
    assert answer(tree) == "ba"
    assert set(actions(tree)) == {"ba"}
