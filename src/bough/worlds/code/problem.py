"""A programming task: its prompt, its tests, and a reference solution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

from bough.worlds.code.families_easy import FAMILIES as EASY
from bough.worlds.code.families_hard import FAMILIES as HARD
from bough.worlds.code.families_line import FAMILIES as LINE
from bough.worlds.code.families_medium import FAMILIES as MEDIUM
from bough.worlds.code.family import Family
from bough.worlds.code.program_test import ProgramTest, call_test, read_test

FAMILIES: Mapping[str, Family] = {family.name: family for family in (*LINE, *EASY, *MEDIUM, *HARD)}
"""The families of generated tasks, by name, from easy to hard."""

DRAWS = 400
"""Maximum number of samples for the arguments of a task's tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A programming task.

    Attributes:
        prompt: The task.
        name: The function to write; "" for a program that reads standard input.
        prefix: Code before the answer; with `continues` the answer continues its last line.
        continues: Whether the answer continues the prefix.
        visible: Tests in the observation.
        hidden: Tests that decide the reward.
        answer: The reference answer; "" where there is none.
    """

    prompt: str
    name: str
    prefix: str
    continues: bool
    visible: tuple[ProgramTest, ...]
    hidden: tuple[ProgramTest, ...]
    answer: str

    def program(self, answer: str) -> str:
        """The program of an answer: after the prefix, or with the prefix where the answer continues it."""
        if not self.continues or f"def {self.name}(" in answer:
            return f"{self.prefix}\n{answer}\n"
        return f"{self.prefix}{answer.strip() if self.prefix.endswith(' ') else answer.rstrip()}\n"

    def record(self) -> dict[str, object]:
        """The task as JSON data."""
        tests = {"visible": [test.record() for test in self.visible], "hidden": [test.record() for test in self.hidden]}
        fields = {"prompt": self.prompt, "name": self.name, "prefix": self.prefix, "continues": self.continues}
        return {**fields, **tests, "answer": self.answer}


def read_problem(data: Mapping[str, Any]) -> Problem:
    """Reads `Problem.record`.

    Raises:
        ValueError: when a field is missing or wrong.
    """
    try:
        return Problem(
            prompt=str(data["prompt"]),
            name=str(data["name"]),
            prefix=str(data["prefix"]),
            continues=bool(data["continues"]),
            visible=tuple(map(read_test, data["visible"])),
            hidden=tuple(map(read_test, data["hidden"])),
            answer=str(data["answer"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"got the task data {dict(data)!r:.200}; need those of a programming task ({error})"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemInstance:
    """A family with parameters. Two instances of equal text are one task.

    Attributes:
        family: Name of the family.
        prompt: The task.
        answer: The reference answer.
        parameters: The parameters.
    """

    family: str
    prompt: str
    answer: str
    parameters: Mapping[str, Any]

    @property
    def content(self) -> str:
        """The canonical text: family, task and solution. It decides the split."""
        return f"{self.family}\n{self.prompt}\n{self.answer}"


def propose(rng: Random, *, names: Sequence[str]) -> ProblemInstance:
    """Samples a family and its parameters."""
    family = FAMILIES[rng.choice(names)]
    parameters = family.parameters(rng)
    return ProblemInstance(
        family=family.name,
        prompt=family.prompt.format(**parameters),
        answer=family.body.strip("\n").format(**parameters),
        parameters=parameters,
    )


def make_problem(instance: ProblemInstance, *, visible: int, hidden: int) -> Problem:
    """Returns the task of an instance, with tests that follow from its content."""
    family = FAMILIES[instance.family]
    line = family.tier == "line"
    prefix = f"{family.header}\n    return " if line else ""
    answer = instance.answer if line else f"{family.header}\n{instance.answer}"
    problem = Problem(
        prompt=instance.prompt, name="f", prefix=prefix, continues=line, visible=(), hidden=(), answer=answer
    )
    function = _function(problem.program(answer))
    rng, tests = Random(instance.content), dict[str, ProgramTest]()
    for _ in range(DRAWS):
        arguments = family.arguments(rng, instance.parameters)
        code = f"f({', '.join(map(repr, arguments))})"
        tests.setdefault(code, call_test(code, function(*arguments)))
        if len(tests) == visible + hidden:
            break
    found = tuple(tests.values())
    return replace(problem, visible=found[:visible], hidden=found[visible:])


@lru_cache(maxsize=1024)
def _function(program: str) -> Any:
    """The function of a reference solution, which is part of Bough."""
    names: dict[str, Any] = {}
    exec(program, names)
    return names["f"]
