"""Programming tasks with unit tests: the agent answers with code."""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from bough.env.env import Branching, Split, State, Step
from bough.env.rows import RowTasks
from bough.env.sandbox import Sandbox, SandboxError
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, SomeOf, piece
from bough.tree import Outcome, Task
from bough.worlds.code.family import Tier
from bough.worlds.code.problem import FAMILIES, Problem, ProblemInstance, make_problem, propose, read_problem
from bough.worlds.code.program_test import ProgramTest, TestReport, run_tests
from bough.worlds.code.rows import read_rows

BLOCK = re.compile(r"```[ \t]*(?:[pP]y\w*[ \t]*)?\n(.*?)(?:```|\Z)", re.DOTALL)

DIFFERENT = 3
"""Fewest different expected values of the hidden tests of a generated task."""

TEST_S = 0.5
"""Limit of processor time of one test, in seconds."""

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError", "UnicodeEncodeError", "ValueError: source code")
"""Beginnings of the errors of answers that are not Python."""

LONGEST = 100_000
"""Longest answer that is run, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeState:
    """The value of a state of `CodeTasks` and `CodeTools`.

    Attributes:
        problem: The task.
        attempts: Number of attempts.
        feedback: Results of the last attempt, as the agent reads them; "" for none.
        outcome: `OPEN` until the episode ends.
    """

    problem: Problem
    attempts: int = 0
    feedback: str = ""
    outcome: Outcome = Outcome.OPEN


@piece
class CodeTasks:
    """Programs with unit tests, which run in a sandbox (`bough.env.sandbox.Sandbox`, which needs bubblewrap).

    The answer is code: the last code block of the text, or the whole text. A task of the tier "line" shows the first
    line of a function; the answer is the expression after its `return`. Expected values never enter the sandbox, so a
    program cannot read them; an assert that compares more than an expression to a literal runs with the program.

    With several attempts the agent reads the results of the visible tests after each wrong one. The episode ends when
    an attempt passes them all, or with the last attempt; with ends="attempts" only then, so that a program that passes
    them all can be replaced. The hidden tests decide the reward; they are the visible ones where a task has no others.
    `Step.info` has the shares of tests that pass: "passed" of the hidden ones, "visible" of the visible ones. The last
    observation, which judges read, has the results of the visible ones.

    A generated task is a family with parameters, and both decide its split. Tasks of a file are split by the "split"
    of the row, else by the prompt. A row has the fields of MBPP (arXiv 2108.07732) or HumanEval (arXiv 2107.03374), or
    "prompt", "tests" and "reference"; a test is an assert statement, `{"call": ..., "value": ...}`, or
    `{"input": ..., "output": ...}` for a program that reads standard input.

    Attributes:
        tiers: Tiers of the generated tasks: "line", "easy", "medium", "hard".
        families: Families of the generated tasks, out of `bough.worlds.code.problem.FAMILIES`; empty for all of the
            tiers.
        file: A file of JSON lines with tasks; "" for generated ones.
        visible: Number of tests in the observation.
        hidden: Number of hidden tests of a generated task.
        reward: "share" is the share of hidden tests that pass; "all" is 1 when all pass, else 0.
        attempts: Maximum number of answers.
        ends: What ends an episode before the last attempt: an attempt that passes all "visible" tests, or nothing.
        sandbox: The limits of the sandbox.

    Raises:
        ValueError: when a field is out of its range.
    """

    waits: ClassVar[bool] = True

    tiers: Annotated[tuple[Tier, ...], SomeOf(get_args(Tier), empty=True)] = ("easy",)
    families: Annotated[tuple[str, ...], SomeOf(FAMILIES, empty=True)] = ()
    file: str = ""
    visible: Annotated[int, AtLeast(0)] = 2
    hidden: Annotated[int, AtLeast(1)] = 8
    reward: Literal["share", "all"] = "share"
    attempts: Annotated[int, AtLeast(1)] = 1
    ends: Literal["visible", "attempts"] = "visible"
    sandbox: Sandbox = field(default_factory=Sandbox)
    branching = Branching.COPY

    def __post_init__(self) -> None:
        if not self.tiers and not self.families:
            raise ValueError("CodeTasks.tiers: got none; need a tier or a family")

    @property
    def instructions(self) -> str:
        """The form of an answer."""
        if not self.file and all(FAMILIES[name].tier == "line" for name in self._names):
            return "Answer with the Python expression that the function returns."
        return "Write Python. Answer with the whole code in one code block."

    @property
    def data_hash(self) -> str:
        """SHA-256 of the tasks of the file; "" for generated tasks."""
        return self._rows.digest if self.file else ""

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split.

        Raises:
            ValueError: when the split has fewer, a row is wrong, or the machine cannot run a sandbox.
        """
        try:
            self.sandbox.check()
        except SandboxError as error:
            raise ValueError(f"CodeTasks: {error}") from error
        if self.file:
            return self._rows.draw(split, count, seed)
        found = draw_instances(
            name="CodeTasks",
            split=split,
            count=count,
            seed=seed,
            propose=partial(propose, names=self._names),
            content=_content,
            accept=self._discriminates,
        )
        return [
            instance_task(
                name=f"code-{instance.family}", content=instance.content, data=self._problem(instance).record()
            )
            for instance in found
        ]

    def start(self, task: Task) -> State:
        """Returns the state with the task.

        Raises:
            ValueError: when `task.data` is not a programming task.
        """
        return _state(CodeState(problem=read_problem(task.data)))

    def step(self, state: State, action: str) -> Step:
        """Runs the tests of an answer. An answer that is not Python gives `valid=False`.

        Raises:
            SandboxError: when the machine cannot run a sandbox.
        """
        before = value_of(state, CodeState, "CodeTasks")
        if before.outcome is not Outcome.OPEN:
            return Step(state=state, outcome=before.outcome, valid=False)
        problem, answer = before.problem, code_of(action)
        last = before.attempts + 1 >= self.attempts
        # A test that hangs ends the program, so the tests that decide come first.
        parts = (problem.hidden, problem.visible) if last else (problem.visible, problem.hidden)
        both, cut = self.report(problem, answer, (*parts[0], *parts[1])), len(parts[0])
        one, other = (replace(both, results=part) for part in (both.results[:cut], both.results[cut:]))
        hidden, visible = (one, other) if last else (other, one)
        last = last or (self.ends == "visible" and bool(problem.visible) and visible.share == 1)
        over = Outcome.TERMINATED if last else Outcome.OPEN
        success = (last or self.ends == "attempts") and hidden.share == 1
        feedback = feedback_of(problem.visible, visible, solved=success)
        after = replace(before, attempts=before.attempts + 1, feedback=feedback, outcome=over)
        valid = 0 < len(answer.strip()) <= LONGEST and not both.error.startswith(NO_PYTHON)
        reward = (hidden.share if self.reward == "share" else float(success)) if last else 0.0
        info: dict[str, object] = {"passed": hidden.share, "error": both.error}
        if problem.visible:
            info["visible"] = visible.share
        return Step(state=_state(after), reward=reward, outcome=over, valid=valid, success=success, info=info)

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the reference answer; None where there is none, or after the end."""
        found = value_of(state, CodeState, "CodeTasks")
        answer = found.problem.answer
        if found.outcome is not Outcome.OPEN or not answer:
            return None
        return (answer if found.problem.continues else f"```python\n{answer}\n```",)

    def report(self, problem: Problem, answer: str, tests: tuple[ProgramTest, ...]) -> TestReport:
        """The results of tests for the code of an answer.

        Raises:
            SandboxError: when the machine cannot run a sandbox.
        """
        return run_tests(problem.program(answer[:LONGEST]), tests, self.sandbox, TEST_S)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.families or tuple(name for name, family in FAMILIES.items() if family.tier in self.tiers)

    @property
    def _rows(self) -> RowTasks:
        return _row_tasks(self.file, self.visible, Path(self.file).expanduser().stat().st_mtime_ns)

    def _problem(self, instance: ProblemInstance) -> Problem:
        return make_problem(instance, visible=self.visible, hidden=self.hidden)

    def _discriminates(self, instance: ProblemInstance) -> bool:
        tests = self._problem(instance).hidden
        return len(tests) == self.hidden and len({test.expected for test in tests}) >= min(DIFFERENT, self.hidden)


def code_of(action: str) -> str:
    """The code of an answer: its last code block, or all of it."""
    blocks = BLOCK.findall(action)
    return blocks[-1] if blocks else action


def feedback_of(tests: tuple[ProgramTest, ...], report: TestReport, *, solved: bool = False) -> str:
    """The results of visible tests; without any, whether the answer fails a hidden one."""
    if report.error:
        return f"error: {report.error}"
    lines = [
        f"{'passed' if result.passed else 'failed'}: {test.text}"
        + ("" if result.passed else f", got {result.got or 'a failed assertion'}")
        for test, result in zip(tests, report.results, strict=True)
    ]
    return (
        "\n".join(lines) or f"There are no visible tests. Your answer {'passes' if solved else 'fails a hidden one'}."
    )


def prompt_of(problem: Problem) -> str:
    """The task as the agent reads it: the text, the visible tests, and the code that the answer continues."""
    lines = [problem.prompt] if problem.prompt != problem.prefix else []
    if problem.visible:
        lines += ["Tests:", *(test.text for test in problem.visible)]
    return "\n".join([*lines, problem.prefix] if problem.continues else lines)


@lru_cache(maxsize=8)
def _row_tasks(file: str, visible: int, changed: int) -> RowTasks:
    del changed
    return RowTasks("CodeTasks", read_rows(file, visible))


def ending_of(current: CodeState) -> str:
    """The part of a state's key that sets an ended episode apart; "" while it is open."""
    return "" if current.outcome is Outcome.OPEN else f"\n{current.outcome.name}"


def _content(instance: ProblemInstance) -> str:
    return instance.content


def _state(current: CodeState) -> State:
    text = current.feedback or prompt_of(current.problem)
    return State(
        observation=text, key=content_hash(f"{current.problem.prompt}\n{text}{ending_of(current)}"), value=current
    )
