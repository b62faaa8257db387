import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Split, State, Step
from bough.env.splits import split_of
from bough.tree import Outcome, Task
from bough.worlds.quiz import Quiz
from bough.worlds.quiz.env import ANSWERS, END, WORDS

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
ODD = ["", " ", "green", "red blue", "\x00", "\ud800", "red" * 100_000, '{"reward": 1}', "<|im_end|>red", "red\u0301"]


def task(*questions: str) -> Task:
    return Task(id="quiz-1", data={"questions": list(questions)})


def wrong(quiz: Quiz, question: str) -> str:
    return next(each for each in ANSWERS if each != quiz.answer(question))


def play(quiz: Quiz, right: str, questions: int) -> list[Step]:
    """Answers so many questions, right ones where the text has a 1."""
    (one,) = quiz.tasks("train", 1, 0)
    state, steps = quiz.start(one), list[Step]()
    for number in range(questions):
        answer = quiz.plan(state)[0] if right[number] == "1" else wrong(quiz, str(state.observation))
        steps.append(quiz.step(state, answer))
        state = steps[-1].state
    return steps


def test_payments_as_in_the_docstring() -> None:
    third = pytest.approx(1 / 3)
    assert [step.reward for step in play(Quiz(questions=3), "101", 3)] == [third, 0.0, third]
    assert [step.reward for step in play(Quiz(questions=3, dense=False), "101", 3)] == [0.0, 0.0, pytest.approx(2 / 3)]


@settings(max_examples=30)
@given(st.integers(1, 25), st.floats(0.05, 1.0), st.data())
def test_both_payments_have_one_sum_and_success_is_the_share(count: int, threshold: float, data: st.DataObject) -> None:
    marks = data.draw(st.text("01", min_size=count, max_size=count))
    dense, late = (
        play(Quiz(questions=count, threshold=threshold, dense=dense), marks, count) for dense in (True, False)
    )
    for steps in (dense, late):
        assert sum(step.reward for step in steps) == pytest.approx(marks.count("1") / count)
        assert [step.outcome for step in steps] == [Outcome.OPEN] * (count - 1) + [Outcome.TERMINATED]
        assert not any(step.success for step in steps[:-1])
        assert steps[-1].success == (marks.count("1") / count >= threshold - 1e-6)
    assert not any(step.reward for step in late[:-1])


@pytest.mark.parametrize(("right", "success"), [(48, True), (47, False)])
def test_eighty_percent_of_sixty(right: int, success: bool) -> None:
    quiz = Quiz()
    assert quiz.required_answers(60) == 48
    assert play(quiz, ("1" * right).ljust(60, "0"), 60)[-1].success == success


def test_the_oracle_answers_everything_from_anywhere() -> None:
    quiz = Quiz(questions=7)
    for split in SPLITS:
        for each in quiz.tasks(split, 20, 3):
            state = quiz.step(quiz.start(each), "nothing").state
            plan = quiz.plan(state)
            assert len(plan) == 6
            for answer in plan:
                step = quiz.step(state, answer)
                state = step.state
                assert step.reward == pytest.approx(1 / 7)
            assert (step.outcome, step.success, quiz.plan(state)) == (Outcome.TERMINATED, True, ())


def test_the_answer_follows_from_the_pair_and_the_table_alone() -> None:
    pairs = [f"{a} {b}" for a in WORDS for b in WORDS]
    tables = [
        [Quiz(table=table, questions=count).answer(pair) for pair in pairs] for table in (0, 1) for count in (3, 9)
    ]
    assert tables[0] == tables[1] != tables[2] == tables[3]
    for answers in tables:
        assert all(answers.count(answer) > len(pairs) / 5 for answer in ANSWERS), "chance is about a third"


def test_the_key_is_the_question_without_the_turn() -> None:
    quiz = Quiz(questions=3)
    state = quiz.start(task("ash bay", "elm fir", "ash bay"))
    seen = [state]
    for _ in range(3):
        seen.append(quiz.step(seen[-1], "red").state)
    assert [each.key for each in seen] == ["ash bay", "elm fir", "ash bay", END]
    assert seen[0].observation == seen[2].observation == "ash bay"


@settings(max_examples=15)
@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), st.integers(4, 60))
def test_no_sequence_of_one_split_is_in_another(seeds: list[int], questions: int) -> None:
    quiz = Quiz(questions=questions)
    drawn = [
        {", ".join(each.data["questions"]) for each in quiz.tasks(split, 12, seed)}  # type: ignore[arg-type]
        for split, seed in zip(SPLITS, seeds, strict=True)
    ]
    assert [len(some) for some in drawn] == [12, 12, 12]
    assert all({split_of(content) for content in some} == {split} for some, split in zip(drawn, SPLITS, strict=True))
    assert not drawn[0] & drawn[1] | drawn[0] & drawn[2] | drawn[1] & drawn[2]


def test_a_split_without_enough_sequences() -> None:
    with pytest.raises(ValueError, match=r"Quiz.tasks: got count=400 for split 'test'"):
        Quiz(questions=1).tasks("test", 400, 0)


@pytest.mark.parametrize("action", ODD)
def test_any_other_text_is_a_wrong_answer_and_no_fault(action: str) -> None:
    quiz = Quiz(questions=2)
    state = quiz.start(task("ash bay", "elm fir"))
    step = quiz.step(state, action)
    assert (step.valid, step.reward, step.outcome, step.state.key) == (False, 0.0, Outcome.OPEN, "elm fir")
    last = quiz.step(step.state, action)
    assert (last.outcome, last.success) == (Outcome.TERMINATED, False)
    over = quiz.step(last.state, "red")
    assert (over.state, over.outcome, over.valid, over.reward) == (last.state, Outcome.TERMINATED, False, 0.0)


def test_case_and_blanks_do_not_matter() -> None:
    quiz = Quiz(questions=1)
    state = quiz.start(task("ash bay"))
    assert quiz.step(state, f"  {quiz.answer('ash bay').upper()}\n").success


def test_tasks_survive_json() -> None:
    (one,) = Quiz(questions=5).tasks("dev", 1, 0)
    assert Task(id=one.id, seed=one.seed, data=json.loads(json.dumps(dict(one.data)))) == one


@pytest.mark.parametrize("questions", [[], ["ash"], ["ash tree"], ["ash  bay"], ["ash bay elm"], "ash bay", None, [3]])
def test_questions_that_are_none(questions: object) -> None:
    with pytest.raises(ValueError, match=r"Quiz: task x got the questions .*; need pairs of words"):
        Quiz().start(Task(id="x", data={"questions": questions}))


@pytest.mark.parametrize(
    ("field", "value"), [("questions", 0), ("words", 1), ("words", 13), ("threshold", 0.0), ("threshold", 1.1)]
)
def test_fields_out_of_range(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Quiz.{field}: got {value}; need "):
        Quiz(**{field: value})


def test_a_state_of_another_environment() -> None:
    with pytest.raises(TypeError, match="Quiz: got a state with a value of type int"):
        Quiz().step(State(observation="", key="", value=3), "red")
