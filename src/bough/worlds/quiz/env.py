"""A quiz in text: many small questions in a row, each rewarded by itself."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

WORDS = ("ash", "bay", "elm", "fir", "gum", "ivy", "lime", "moss", "oak", "pine", "rose", "yew")
ANSWERS = ("red", "blue", "gold")
END = "end"
"""Observation and key after the last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuizState:
    """The value of a state of `Quiz`: the questions, the number of answers so far, and of right ones."""

    questions: tuple[str, ...]
    answered: int = 0
    right: int = 0


@piece
class Quiz:
    """Questions in a row: each shows two words and has one of three answers, a fixed function of the pair.

    The function is a table without structure, so each of `words` squared questions is learned by itself. An episode
    shows all its questions, whatever the answers. Success needs a share of `threshold` right answers. With n questions
    a right answer pays 1 / n at its turn; with `dense=False` the same sum is paid at the last turn. Of three questions,
    with the first and the last answered rightly:

        dense          1/3  0  1/3
        dense=False    0    0  2/3

    An answer that is none of the three is a wrong one, and not valid. The state key is the present question. Two states
    with one question can differ in the later questions; these are drawn independently of it, so the answer decides
    nothing but its own payment. A contextual bandit of many rounds (arXiv 1003.0146) has the same structure.

    The content of a task is its sequence of questions, and decides its split. Questions recur in all splits: the agent
    has to learn the table, not a sequence.

    Attributes:
        questions: Number of questions of an episode, at least 1.
        words: Number of words, 2 to 12.
        threshold: Share of right answers that is success, above 0 and at most 1.
        dense: Whether right answers are rewarded at their turns; else at the last turn.
        table: Seed of the answers.

    Raises:
        ValueError: when a field is out of its range.
    """

    questions: Annotated[int, AtLeast(1, "1 or more")] = 60
    words: Annotated[int, Between(2, len(WORDS))] = 12
    threshold: Annotated[float, Between(0, 1, "a share above 0, at most 1", above=True)] = 0.8
    dense: bool = True
    table: int = 0
    branching = Branching.COPY

    @property
    def deviations(self) -> Mapping[str, str]:
        """Keys leave out how many questions are left, so that states recur."""
        return {"state keys": "a key is the question, and leaves out how many are left"}

    @property
    def instructions(self) -> str:
        """The rules."""
        return f"Answer {', '.join(ANSWERS[:-1])} or {ANSWERS[-1]}."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different sequences of questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="Quiz",
            split=split,
            count=count,
            seed=seed,
            propose=self._propose,
            content=", ".join,
            accept=bool,
        )
        return [instance_task(name="quiz", content=", ".join(each), data={"questions": list(each)}) for each in drawn]

    def start(self, task: Task) -> State:
        """Returns the state with the first question.

        Raises:
            ValueError: when `task.data["questions"]` is not a list of pairs of the environment's words.
        """
        found = task.data.get("questions")
        questions = tuple(map(str, cast("list[object]", found))) if isinstance(found, list) else ()
        words = WORDS[: self.words]
        if not questions or any(len(each := pair.split(" ")) != 2 or not {*each} <= {*words} for pair in questions):
            raise ValueError(f"Quiz: task {task.id} got the questions {found!r}; need pairs of words out of {words}")
        return _state(QuizState(questions=questions))

    def step(self, state: State, action: str) -> Step:
        """Answers the present question. After the last one every action is invalid and changes nothing."""
        current = value_of(state, QuizState, "Quiz")
        if current.answered == len(current.questions):
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        answer = action.strip().lower()
        right = answer == self.answer(current.questions[current.answered])
        after = QuizState(questions=current.questions, answered=current.answered + 1, right=current.right + right)
        done, count = after.answered == len(after.questions), len(after.questions)
        paid = int(right) if self.dense else after.right * done
        return Step(
            state=_state(after),
            reward=paid / count,
            outcome=Outcome.TERMINATED if done else Outcome.OPEN,
            valid=answer in ANSWERS,
            success=done and after.right >= self.required_answers(count),
        )

    def required_answers(self, questions: int) -> int:
        """The number of right answers that success requires, for a number of questions."""
        # Rounded first, so that .8 of 60 is 48 where the product is a bit above it.
        return math.ceil(round(self.threshold * questions, 6))

    def answer(self, question: str) -> str:
        """The right answer to a question, a text of two words."""
        return ANSWERS[int(content_hash(f"quiz {self.table}\n{question}"), 16) % len(ANSWERS)]

    def plan(self, state: State) -> tuple[str, ...]:
        """Returns the right answers to the questions that are left."""
        current = value_of(state, QuizState, "Quiz")
        return tuple(map(self.answer, current.questions[current.answered :]))

    def _propose(self, rng: random.Random) -> tuple[str, ...]:
        words = WORDS[: self.words]
        return tuple(f"{rng.choice(words)} {rng.choice(words)}" for _ in range(self.questions))


def _state(current: QuizState) -> State:
    text = current.questions[current.answered] if current.answered < len(current.questions) else END
    return State(observation=text, key=text, value=current, admissible=ANSWERS)
