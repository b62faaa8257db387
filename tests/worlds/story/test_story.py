"""Stories: what counts as a step, and as a whole."""

import pytest

from bough.tree import Outcome, Task
from bough.worlds.story import Story

ENV = Story(steps=2, max_words=6)
TASK = Task(id="story-1", data={"words": ["fox", "bell", "cave"]})


def play(*steps: str) -> tuple[list[bool], bool, float]:
    state, valid = ENV.start(TASK), []
    for action in steps:
        step = ENV.step(state, action)
        state = step.state
        valid.append(bool(step.valid))
    assert step.outcome is Outcome.TERMINATED
    return valid, bool(step.success), step.reward


@pytest.mark.parametrize(
    ("steps", "valid", "success"),
    [
        (("The fox finds a bell.", "The Cave, it rings."), [True, True], True),
        (("The fox finds a bell.", "It rings and rings."), [True, True], False),
        (("The fox finds a bell", "The cave, it rings."), [False, True], False),
        (("The fox, bell and cave.", "The fox, bell and cave."), [True, False], False),
        (("The fox finds a bell in the cave.", "It rings and rings."), [False, True], False),
        (("Fox. Bell. Cave.", "It rings and rings."), [False, True], False),
    ],
)
def test_a_story_is_different_sentences_with_all_words(
    steps: tuple[str, ...], valid: list[bool], success: bool
) -> None:
    assert play(*steps) == (valid, success, float(success))


def test_the_oracle_completes_a_story_that_can_be_completed() -> None:
    env = Story()
    for task in env.tasks("test", 5, 0):
        state = env.start(task)
        state = env.step(state, "Once there was an old house.").state
        plan = env.plan(state)
        assert plan is not None
        assert len(plan) == 3
        for action in plan:
            step = env.step(state, action)
            state = step.state
        assert step.success
    assert env.plan(state) is None, "nothing is left to write"
    assert env.plan(env.step(env.start(task), "no sentence").state) is None


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"Story.steps: got 0; need at least 1"):
        Story(steps=0)
    with pytest.raises(ValueError, match=r"Story: task t got the words 3; need a list of words"):
        ENV.start(Task(id="t", data={"words": 3}))
