"""Actions that are imagined before one is carried out."""

from dataclasses import replace

import pytest
from tests.explore.stage import Letters, World, grow, runner
from tests.search.talk import actions, answer, letter, questions, search, talk

from bough.engine import InjectedFault
from bough.env import Branching, InProcessHost
from bough.needs import FORKS, needs_of
from bough.rollout import Limits, RoleModel
from bough.search import Best, Imagine, Sample, Search, WebDreamer
from bough.tree import Outcome, Source, leaves


def mind(liked: str):  # type: ignore[no-untyped-def]
    """Imagines gold behind a letter and mud behind others, and knows which is better."""

    def say(read: str) -> str:
        if read.startswith("{You are the environment"):
            done = read.rpartition("> ")[2][0]
            return "gold" if done == liked else "mud"
        return "yes" if "gold" in read else "no"

    return say


@pytest.mark.parametrize("liked", ["a", "b"])
def test_what_is_imagined_decides_what_is_done(liked: str) -> None:
    """One path, of which no state is stepped twice, in an environment from which there is no way back."""
    engine = talk(letter, mind(liked))
    explorer = WebDreamer(width=6, imagine=Imagine(n=2, answers=2))
    assert FORKS not in needs_of(explorer)
    tree = search(engine, explorer, host=InProcessHost(env=World(branching=Branching.NONE)))
    assert answer(tree) == liked * 3
    assert tree.counts.turns == 3
    assert sum(tree.outcome[leaf] == Outcome.TERMINATED for leaf in leaves(tree)) == 1
    found = actions(tree)
    assert {found["a"]["rating"], found["b"]["rating"]} == {0.0, 1.0}
    assert {info["source"] for info in found.values()} == {Source.SAMPLED}
    # Three places, two actions, two simulations: a step and two judgements each.
    assert len(questions(engine)) == 3 * 2 * 2 * (1 + 2)


def test_a_world_model_of_its_own_imagines_and_the_policy_judges() -> None:
    policy, world = talk(letter, mind("a")), talk(letter, mind("a"))
    place = runner(policy, InProcessHost(env=World(branching=Branching.NONE)), max_tokens=200)
    models = {"world": RoleModel(engine=world, renderer=Letters(), name="world")}
    place = replace(place, agent=replace(place.agent, models=models))
    (tree,) = grow(place, WebDreamer(width=6, imagine=Imagine(n=1, world_role="world"))).trees
    assert answer(tree) == "aaa"
    imagined, judged = questions(world), questions(policy)
    assert len(imagined) == len(judged) > 0
    assert all(read.startswith("{You are the environment") for read in imagined)
    assert all("Is the task solved" in read for read in judged)


def test_it_imagines_several_turns_and_says_what_it_would_do() -> None:
    said: list[str] = []

    def say(read: str) -> str:
        said.append(read)
        if read.startswith("{You are the environment"):
            return f"place {read.count('> ')}"
        return " c \n" if "What do you do next" in read else "yes"

    engine = talk(letter, say)
    tree = search(engine, Search(select=Best(), expand=Sample(width=6), rate=Imagine(n=1, depth=3), rounds=1))
    assert len(said) == 2 * (2 * 3 - 1 + 1)
    judged = [read for read in said if "Is the task solved" in read]
    assert sorted(judged) == sorted(
        f"{{You judge how an agent gets on with its task.: }}{{The agent was told:\ngo\n\nWhat happened:\n.\n"
        f"> {action}\nplace 1\n> c\nplace 2\n> c\nplace 3\n\nIs the task solved? Answer yes; on track if it is not, "
        "but comes nearer; or no.}"
        for action in "ab"
    )
    assert tree.counts.turns == 0


def test_what_is_over_in_imagination_is_imagined_no_further() -> None:
    engine = talk(letter, lambda read: "end [over]" if read.startswith("{You are the env") else "on track")
    tree = search(engine, Search(select=Best(), expand=Sample(width=6), rate=Imagine(n=1, depth=3), rounds=1))
    assert len(questions(engine)) == 2 * 2
    assert actions(tree)["a"]["rating"] == 0.5


def test_simulations_that_fail_are_counted_and_leave_the_mean() -> None:
    runs: dict[str, int] = {}

    def say(read: str) -> str | InjectedFault:
        if not read.startswith("{You are the environment"):
            return "yes"
        done = read.rpartition("> ")[2][0]
        runs[done] = runs.get(done, 0) + 1
        return InjectedFault.FAULT if done == "b" and runs[done] != 1 else "gold"

    engine = talk(letter, say)
    tree = search(engine, Search(select=Best(), expand=Sample(width=6), rate=Imagine(n=4), rounds=1))
    found = actions(tree)
    assert found["a"]["rating"] == 1.0
    assert found["b"]["rating"] == 1.0, "the one of four that is known"
    assert (tree.counts.unanswered, tree.counts.unjudged) == (3, 0)
    assert runs == {"a": 4, "b": 1 + 2 * 3}, "each was tried twice"


def test_one_action_is_done_without_imagining() -> None:
    engine = talk(lambda *_: "a", lambda _: "never")
    assert answer(search(engine, WebDreamer())) == "aaa"
    assert not questions(engine)


def test_budgets_are_exact() -> None:
    for calls in range(1, 30):
        engine = talk(letter, mind("a"))
        tree = search(engine, WebDreamer(width=2), limits=Limits(tree_calls=calls))
        assert len(engine.requests) <= calls
        assert tree.answer.sum() == 1


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Imagine\.depth: got 0"):
        Imagine(depth=0)
    with pytest.raises(ValueError, match=r"Imagine\.next: got the placeholders \['action'\]"):
        Imagine(next="{action}")
