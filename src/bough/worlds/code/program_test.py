"""Tests of a program, and their results in a sandbox."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias, cast

from bough.env.sandbox import Ending, Sandbox
from bough.worlds.code.canonical import canonical, output_lines
from bough.worlds.code.equal_texts import equal_texts

Kind: TypeAlias = Literal["call", "check", "input"]

LONGEST = 10000
"""Longest expected value, in characters."""

SHOWN = 200
"""Longest value or error of a program that a model reads, in characters."""

OUTPUT_BYTES = 2**21
"""Limit of the results of all tests of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTest:
    """One test of a program.

    The expected value of a call or a run stays outside of the sandbox, so a program cannot read it. A check is a
    statement that runs in the sandbox with the program, which could tamper with it.

    Attributes:
        kind: "call": an expression with its value. "check": a statement that raises when it fails. "input": the
            standard input of a run, with its output.
        code: The expression, the statement, or the input.
        expected: The canonical value of a call or a run.
        shown: The value for a model.
    """

    kind: Kind
    code: str
    expected: str = ""
    shown: str = ""

    def record(self) -> list[str]:
        """The test as JSON data."""
        return [self.kind, self.code, self.expected, self.shown]

    @property
    def text(self) -> str:
        """The test for a model."""
        if self.kind == "input":
            return f"input {self.code!r} gives output {self.shown}"
        return self.code if self.kind == "check" else f"{self.code} == {self.shown}"


def call_test(code: str, value: object) -> ProgramTest:
    """A call with its value, of built-in types."""
    return _bounded(ProgramTest(kind="call", code=code, expected=canonical(value), shown=canonical(value, shown=True)))


def input_test(text: str, output: str) -> ProgramTest:
    """A run of the program as a script, with its standard input and output."""
    expected = canonical(output_lines(output))
    return _bounded(ProgramTest(kind="input", code=text, expected=expected, shown=expected))


def assert_test(statement: str) -> ProgramTest:
    """An assert statement: a call where it compares an expression to a literal, else a check."""
    try:
        body = ast.parse(statement).body
        asserted = body[0].test if len(body) == 1 and isinstance(body[0], ast.Assert) else None
        if isinstance(asserted, ast.Compare) and len(asserted.ops) == 1 and isinstance(asserted.ops[0], ast.Eq):
            return call_test(ast.unparse(asserted.left), ast.literal_eval(asserted.comparators[0]))
    except (ValueError, SyntaxError):
        pass
    return ProgramTest(kind="check", code=statement)


def read_test(record: Sequence[str]) -> ProgramTest:
    """Reads `ProgramTest.record`."""
    kind, code, expected, shown = record
    return ProgramTest(kind=cast("Kind", kind), code=code, expected=expected, shown=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The result of one test.

    Attributes:
        passed: Whether the program passed.
        got: The program's value or error, for a model.
    """

    passed: bool
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """The results of all tests of a program.

    Attributes:
        results: In the order of the tests.
        error: The error of the program itself, for which no test ran; "" when tests ran.
    """

    results: tuple[TestResult, ...]
    error: str = ""

    @property
    def share(self) -> float:
        """The share of tests that passed, 0 to 1; 0 without tests."""
        return sum(each.passed for each in self.results) / len(self.results) if self.results else 0.0


@lru_cache(maxsize=8192)
def run_tests(program: str, tests: tuple[ProgramTest, ...], sandbox: Sandbox, test_s: float) -> TestReport:
    """Runs all tests of a program in one sandbox. Equal arguments return the first result again.

    A test that ends the program or takes too long fails all tests after it.

    Args:
        program: The program.
        tests: The tests.
        sandbox: Where they run.
        test_s: Limit of processor time of each test, in seconds.

    Raises:
        SandboxError: when the machine cannot run a sandbox.
    """
    given = [(each.kind, each.code) for each in tests]
    result = replace(sandbox, output_bytes=OUTPUT_BYTES).run(
        f"{_harness()}\nevaluate({program!a}, {given!a}, {test_s})\n"
    )
    lines = _parsed(result.stdout)
    missing = "not run" if result.ending is Ending.EXITED else f"the program ended: {result.ending}"
    if -1 in lines:
        missing = lines[-1][2]
    found = [_judged(test, lines.get(number), missing) for number, test in enumerate(tests)]
    return TestReport(results=tuple(found), error=missing if not {*range(len(tests))} & {*lines} else "")


def _judged(test: ProgramTest, line: tuple[str, str, str] | None, missing: str) -> TestResult:
    if line is None:
        return TestResult(passed=False, got=missing)
    status, value, shown = line
    passed = status == "passed" if test.kind == "check" else status == "value" and equal_texts(value, test.expected)
    return TestResult(passed=passed, got=shown)


def _parsed(text: str) -> Mapping[int, tuple[str, str, str]]:
    """The lines of the harness by number; other lines are the program's own and do not count."""
    found: dict[int, tuple[str, str, str]] = {}
    for line in text.split("\n"):
        number, _, rest = line.partition("\t")
        parts = rest.split("\t")
        if len(parts) == 3 and number.removeprefix("-").isdecimal() and len(number) < 9:
            found.setdefault(int(number), (parts[0], parts[1][:LONGEST], parts[2][:SHOWN]))
    return found


def _bounded(test: ProgramTest) -> ProgramTest:
    if len(test.expected) > LONGEST:
        raise ValueError(f"test {test.code[:80]!r}: got a value of {len(test.expected)} characters; need {LONGEST}")
    return test


@lru_cache(maxsize=1)
def _harness() -> str:
    """The program that defines `canonical` and `evaluate`, without the imports that only type checkers need."""
    texts = [Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in ("canonical", "harness")]
    lines = "\n".join(texts).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("from bough", "from typing")))
