"""Socratic debugging: levels, resolved bugs, lessons, and the student's seat."""

import pytest
from tests.env.play import follow

from bough.env import EnvFault, ScriptedSeats, State, Step
from bough.tree import Outcome, Task
from bough.worlds.socratic import ScriptedStudent, Socratic
from bough.worlds.socratic.env import BUGS, socratic_state

TASK = Task(id="a", data={"bugs": ["range", "order"]})
ENV = ScriptedSeats(env=Socratic(), scripts={"student": ScriptedStudent()})


def ask(*questions: str, state: State | None = None) -> Step:
    step = Step(state=state or ENV.start(TASK))
    for question in questions:
        step = ENV.step(step.state, question)
    return step


def place(state: State) -> tuple[int, int, int]:
    """The bug, the level, and the failed questions on it."""
    found = socratic_state(state.value.inner)  # type: ignore[attr-defined]
    return found.bug, found.level, found.failed


def test_a_failed_question_stays_on_its_level_and_an_understood_one_goes_deeper() -> None:
    assert place(ask("explain it").state) == (0, 0, 1)
    assert place(ask("explain it", "can you trace it?").state) == (0, 1, 0)
    assert place(ask("trace", "trace").state) == (0, 1, 1)
    assert place(ask("trace", "test").state) == (1, 0, 0)
    assert ask("explain").reward == -0.02
    assert ask("trace").reward == pytest.approx(1 / 4 - 0.02)


def test_all_bugs_resolved_is_success_and_the_tree_has_every_question() -> None:
    end = ask("explain", "trace", "test", "compare", "predict")
    assert (end.outcome, end.success) == (Outcome.TERMINATED, True)
    assert end.info == {"resolved": 2, "questions": 5, "taught": 0}
    tree = socratic_state(end.state.value.inner).questions  # type: ignore[attr-defined]
    assert [(each.bug, each.level, each.understood) for each in tree] == [
        (0, 0, False),
        (0, 0, True),
        (0, 1, True),
        (1, 0, True),
        (1, 1, True),
    ]


def test_the_instructor_may_teach_after_three_failed_questions_and_not_before() -> None:
    early = ask("explain", "explain", "teach")
    assert not early.valid
    assert place(early.state) == (0, 0, 2)
    waiting = ask("explain", "explain", "predict")
    assert "teach" in (waiting.state.admissible or ())
    told = ask("teach", state=waiting.state)
    assert place(told.state) == (0, 1, 0)
    assert told.reward == pytest.approx(1 / 4 - 0.1)
    assert told.info == {"resolved": 0, "questions": 3, "taught": 1}


def test_a_model_may_be_the_student_and_the_word_of_the_fact_decides() -> None:
    env = Socratic()
    asked = env.step(env.start(TASK), "Where does it go wrong?").state
    assert asked.seat == "student"
    assert "for i in range(n - 1):\nif x > y: y = x" in str(asked.observation)
    assert "you know: nothing" in str(asked.observation)
    assert socratic_state(env.step(asked, "Ah, the loop stops early.").state).level == 1
    assert socratic_state(env.step(asked, "No idea about loops.").state).failed == 1


def test_turns_run_out_and_the_oracle_needs_no_lesson() -> None:
    env = ScriptedSeats(env=Socratic(max_turns=2), scripts={"student": ScriptedStudent()})
    step = env.step(env.step(env.start(TASK), "predict").state, "")
    assert (step.outcome, step.success) == (Outcome.TRUNCATED, False)
    for split in ("train", "test"):
        for task in ENV.tasks(split, 4, 0):  # type: ignore[arg-type]
            end = follow(ENV, ENV.start(task))
            assert end.success
            assert end.info["taught"] == 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"Socratic.bugs: got 7"):
        Socratic(bugs=7)
    with pytest.raises(ValueError, match="got the bugs"):
        Socratic().start(Task(id="b", data={"bugs": ["moth"]}))
    with pytest.raises(EnvFault, match="no student replies"):
        ScriptedStudent().act(Socratic().start(TASK), 0)
    assert all(len({*bug.facts}) == 3 for bug in BUGS.values())
