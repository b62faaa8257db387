"""Socratic debugging: an instructor leads a student to the bugs of its own program by questions."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, cast

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task
from bough.worlds.dialogue.scenario import words_in

INSTRUCTOR, STUDENT = "instructor", "student"
TEACH = "teach"
ANGLES = ("trace", "predict", "compare", "explain", "test")
"""Kinds of questions; the scripted student understands a level after one of them."""
MOST_CHARACTERS = 2000
"""Maximum length of a text that the other seat observes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A kind of bug.

    Attributes:
        line: The wrong line.
        facts: What the student has to find, level by level: a word for the place, the cause, and the correction.
        angles: The kind of question that leads the scripted student to each fact.
    """

    line: str
    facts: tuple[str, str, str]
    angles: tuple[str, str, str]


BUGS: Mapping[str, Bug] = {
    "range": Bug(line="for i in range(n - 1):", facts=("loop", "last", "n"), angles=("trace", "test", "predict")),
    "start": Bug(line="total = 1", facts=("begin", "one", "zero"), angles=("predict", "trace", "compare")),
    "return": Bug(line="print(total)", facts=("end", "nothing", "return"), angles=("test", "explain", "compare")),
    "equal": Bug(line="if x = y:", facts=("condition", "assignment", "double"), angles=("explain", "compare", "trace")),
    "order": Bug(line="if x > y: y = x", facts=("swap", "lost", "both"), angles=("compare", "predict", "test")),
    "indent": Bug(
        line="return total  # in the loop", facts=("early", "once", "after"), angles=("trace", "predict", "explain")
    ),
    "type": Bug(line="total = total + '1'", facts=("sum", "text", "number"), angles=("test", "compare", "explain")),
    "name": Bug(line="totl = total + x", facts=("spelling", "unused", "total"), angles=("explain", "trace", "predict")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionNode:
    """A node of the question tree.

    Attributes:
        bug: The number of the bug, from 0.
        level: Its level, from 0; a question below one that was understood has the next level.
        text: The instructor's text.
        reply: The student's text.
        understood: Whether the reply has the fact of the level.
    """

    bug: int
    level: int
    text: str
    reply: str
    understood: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SocraticState:
    """The value of a state of `Socratic`.

    Attributes:
        bugs: The names of the bugs, in the order in which they are discussed.
        questions: The question tree, in order.
        bug: Number of resolved bugs; that of the present one.
        level: The present level, from 0.
        failed: Number of questions on this level that were not understood.
        asked: The question that the student answers; "" while the instructor acts.
        turns: Number of the instructor's turns.
        over: Whether the dialogue is over.
    """

    bugs: tuple[str, ...]
    questions: tuple[QuestionNode, ...] = ()
    bug: int = 0
    level: int = 0
    failed: int = 0
    asked: str = ""
    turns: int = 0
    over: bool = False


@piece
class Socratic:
    """Socratic debugging (TreeInstruct, arXiv 2406.11709): questions lead a student to the bugs of its program.

    The state is the list of resolved bugs. For each bug the student has to find its place, its cause and its
    correction, the `levels` of a tree of questions: after a reply with the fact of the level the next question is one
    level deeper, otherwise on the same level. After `patience` failed questions the instructor may answer `teach`,
    a lesson that has the fact. The last level resolves the bug.

        level 1   trace: no      predict: no     test: yes
        level 2                                  explain: yes     ...

    Seats are `instructor` and `student`. Any text of the instructor is a question. A reply is understood when it has
    the word of the fact; the student reads its own program, and what it does not know yet. The script
    `ScriptedStudent` acts for it, and finds a fact after one kind of question, a function of bug and level; so can a
    model.

    A level pays 1 / (bugs * levels); a question costs `question_cost`, `teach` costs `teach_cost`. Success is that all
    bugs are resolved. The paper's verifier is a model that reads the reply. Its instructor also plans the order of the
    bugs, and its problems are programs with bugs that experts wrote.

    Attributes:
        bugs: Number of bugs of a program, 1 to 3.
        levels: Levels of each bug, 1 to 3.
        patience: Failed questions on a level after which `teach` is possible, at least 1.
        question_cost: Subtracted from the reward at each question.
        teach_cost: Subtracted from the reward at each `teach`.
        max_turns: The instructor's turns after which the dialogue is `TRUNCATED`, at least 1.

    Raises:
        ValueError: when a field is out of its range.
    """

    bugs: Annotated[int, Between(1, 3)] = 2
    levels: Annotated[int, Between(1, 3)] = 2
    patience: Annotated[int, AtLeast(1)] = 3
    question_cost: float = 0.02
    teach_cost: float = 0.1
    max_turns: Annotated[int, AtLeast(1)] = 16

    seats: ClassVar[Mapping[str, str]] = {
        INSTRUCTOR: "You are the instructor. Answer with one question, or teach.",
        STUDENT: "You are a student who is honest about what it does not know. Answer in one short sentence.",
    }
    branching = Branching.COPY

    @property
    def deviations(self) -> Mapping[str, str]:
        """No text is invalid."""
        return {"garbage texts": "any text is a question to the student; those of the oracle are listed"}

    @property
    def instructions(self) -> str:
        """The kinds of questions."""
        return (
            f"Lead the student to its bugs by questions: {', '.join(ANGLES)}. Say no answer yourself; after "
            f"{self.patience} failed questions on a level you may {TEACH}."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different programs of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="Socratic",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, bugs=self.bugs),
            content=" ".join,
            accept=bool,
        )
        return [instance_task(name="socratic", content=" ".join(each), data={"bugs": list(each)}) for each in drawn]

    def start(self, task: Task) -> State:
        """Returns the state before the first question.

        Raises:
            ValueError: when `task.data["bugs"]` is not a list of known bugs.
        """
        found = task.data.get("bugs")
        bugs = tuple(map(str, cast("list[object]", found))) if isinstance(found, list) else ()
        if not bugs or {*bugs} - {*BUGS}:
            raise ValueError(f"Socratic: task {task.id} got the bugs {found!r}; need some of {[*BUGS]}")
        return self._state(SocraticState(bugs=bugs))

    def step(self, state: State, action: str) -> Step:
        """Asks a question, teaches, or takes a reply. `teach` too early, and an empty question, are not valid."""
        current = socratic_state(state)
        text = " ".join(action[:MOST_CHARACTERS].encode(errors="replace").decode().split())
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        if current.asked:
            fact = BUGS[current.bugs[current.bug]].facts[current.level]
            return self._noted(replace(current, asked=""), current.asked, text, bool(words_in(text, (fact,))))
        current = replace(current, turns=current.turns + 1)
        if text.lower() == TEACH and current.failed >= self.patience:
            return self._noted(current, TEACH, "", understood=True)
        if not text or text.lower() == TEACH:
            return self._next(current, valid=False)
        return Step(state=self._state(replace(current, asked=text)))

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the questions that the scripted student needs; the fact where the student acts."""
        current = socratic_state(state)
        if current.over:
            return None
        if current.asked:
            return (ScriptedStudent().act(state, 0),)
        left = [(bug, level) for bug in range(len(current.bugs)) for level in range(self.levels)]
        begin = current.bug * self.levels + current.level
        return tuple(BUGS[current.bugs[bug]].angles[level] for bug, level in left[begin:])

    def _noted(self, current: SocraticState, text: str, reply: str, understood: bool) -> Step:
        """A question or a lesson, as a node of the tree."""
        node = QuestionNode(bug=current.bug, level=current.level, text=text, reply=reply, understood=understood)
        after = replace(current, questions=(*current.questions, node))
        cost = self.teach_cost if text == TEACH else self.question_cost
        if not understood:
            return self._next(replace(after, failed=current.failed + 1), reward=-cost)
        resolved = current.level + 1 == self.levels
        after = replace(
            after,
            failed=0,
            level=0 if resolved else current.level + 1,
            bug=current.bug + 1 if resolved else current.bug,
        )
        return self._next(after, reward=1 / (len(current.bugs) * self.levels) - cost)

    def _next(self, after: SocraticState, *, reward: float = 0.0, valid: bool = True) -> Step:
        """The instructor's next turn, or the end."""
        solved = after.bug == len(after.bugs)
        out = after.turns >= self.max_turns
        taught = sum(each.text == TEACH for each in after.questions)
        return Step(
            state=self._state(replace(after, over=solved or out)),
            reward=reward,
            outcome=Outcome.TERMINATED if solved else Outcome.TRUNCATED if out else Outcome.OPEN,
            valid=valid,
            success=solved,
            info={"resolved": after.bug, "questions": len(after.questions) - taught, "taught": taught},
        )

    def _state(self, current: SocraticState) -> State:
        key = f"{current.bugs} {current.bug} {current.level} {current.failed} {current.asked}"
        if current.asked:
            return State(observation=_question(current), key=f"{STUDENT} {key}", value=current, seat=STUDENT)
        moves = (*ANGLES, *((TEACH,) if current.failed >= self.patience else ()))
        shown = _brief(current) if not current.over else "over"
        key += " over" if current.over else ""
        return State(observation=shown, key=key, value=current, admissible=moves, seat=INSTRUCTOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStudent:
    """A student that finds the fact of a level after the kind of question that leads to it, and no other."""

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`; the reply has no random choices.

        Raises:
            EnvFault: when the instructor acts in the state, or it is one of another environment.
        """
        del seed
        if not isinstance(state.value, SocraticState) or not state.value.asked:
            raise EnvFault("ScriptedStudent: got a state in which no student replies; need one of Socratic")
        current = state.value
        bug = BUGS[current.bugs[current.bug]]
        led = words_in(current.asked, ANGLES) == [bug.angles[current.level]]
        return f"it is {bug.facts[current.level]}." if led else "i do not know."


def socratic_state(state: State) -> SocraticState:
    """The value of a state of `Socratic`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, SocraticState, "Socratic")


def _brief(current: SocraticState) -> str:
    """What the instructor reads: the present bug, the level, and the failed questions on it."""
    here = [each for each in current.questions if (each.bug, each.level) == (current.bug, current.level)]
    failed = "".join(f"\n{each.text}: {each.reply}" for each in here[-3:])
    bug = BUGS[current.bugs[current.bug]] if current.bug < len(current.bugs) else None
    line = "" if bug is None else f"\n{bug.line}\nthe student must say: {bug.facts[current.level]}"
    return f"resolved {current.bug} of {len(current.bugs)}, level {current.level + 1}{line}{failed}"


def _question(current: SocraticState) -> str:
    """What the student reads: its program, the known facts of the present bug, and the question."""
    program = "\n".join(BUGS[each].line for each in current.bugs)
    bug = BUGS[current.bugs[current.bug]]
    known = ", ".join(bug.facts[: current.level]) or "nothing"
    return (
        f"Your program:\n{program}\nOf the line {bug.line!r} you know: {known}. If the question leads you to it, name "
        f"what is wrong there.\n{INSTRUCTOR}: {current.asked}"
    )


def _propose(rng: random.Random, *, bugs: int) -> tuple[str, ...]:
    return tuple(rng.sample([*BUGS], bugs))
