"""Hidden facts: what a question reveals, and which signs decide."""

import pytest

from bough.tree import Outcome, Task
from bough.worlds.facts import HiddenFacts


def test_questions_reveal_facts_and_an_answer_ends() -> None:
    env = HiddenFacts(facts=5, turn_cost=0.1)
    (task,) = env.tasks("train", 1, 0)
    facts = [str(each) for each in task.data["facts"]]  # type: ignore[attr-defined]
    state = env.start(task)
    assert not any(fact in str(state.observation) for fact in facts), "facts are hidden"
    step = env.step(state, f"ask {facts[0].split()[0]}")
    assert (step.state.observation, step.reward, step.outcome) == (facts[0], -0.1, Outcome.OPEN)
    assert not env.step(step.state, "ask me").valid
    end = env.step(step.state, str(task.data["answer"]))
    assert end.success
    assert (end.reward, end.outcome) == (1.0, Outcome.TERMINATED)
    assert not env.step(end.state, "ask fever").valid


def test_the_oracle_asks_about_the_signs_that_decide() -> None:
    env = HiddenFacts(facts=8, informative=3)
    for task in env.tasks("train", 10, 0):
        plan = env.plan(env.start(task))
        assert plan == (*(f"ask {sign}" for sign in env.deciding), task.data["answer"])


def test_signs_that_do_not_decide_have_no_effect_on_the_class() -> None:
    env = HiddenFacts(facts=4, informative=2)
    classes: dict[tuple[str, ...], set[str]] = {}
    for task in env.tasks("train", 8, 0):
        facts = dict(str(each).split() for each in task.data["facts"])  # type: ignore[attr-defined]
        classes.setdefault(tuple(facts[sign] for sign in env.deciding), set()).add(str(task.data["answer"]))
    assert all(len(names) == 1 for names in classes.values())
    assert len(set[str]().union(*classes.values())) == len(classes)


def test_patience_ends_an_episode_and_wrong_settings_are_refused() -> None:
    env = HiddenFacts(patience=1)
    (task,) = env.tasks("train", 1, 0)
    assert env.step(env.start(task), "ask fever").outcome is Outcome.TRUNCATED
    with pytest.raises(ValueError, match=r"HiddenFacts.facts: got 21; need a number from 2 to 20"):
        HiddenFacts(facts=21)
    with pytest.raises(ValueError, match="need one for each of fever"):
        env.start(Task(id="x", data={"facts": ["fever maybe"]}))
