"""Runs in a sandbox: executes a program, runs its tests, and writes one line for each.

This file is never imported: its text follows that of `canonical.py`, and a call of `evaluate` follows it.
"""

import io
import os
import signal
import sys

from bough.env.coding.canonical import canonical, output_lines

SHOWN = 200
"""Longest text of an error or a value that a model reads, in characters."""

LONGEST = 10000
"""Longest value that is compared, in characters."""


class TestTimeout(BaseException):
    """A test reached its limit of processor time."""


def stop(*signal_and_frame: object) -> None:
    """Ends the running test."""
    del signal_and_frame
    raise TestTimeout("the test took too long")


def explained(error: BaseException) -> str:
    """The class and the text of an error, as one line of ASCII."""
    return ascii(f"{type(error).__name__}: {error}"[:SHOWN])[1:-1]


def outcome(kind: str, code: str, source: str, names: dict[str, object]) -> str:
    """Runs one test: its status, the canonical value, and the value for a model, separated by tabs."""
    if kind == "check":
        exec(code, names)
        return "passed\t\t"
    if kind == "call":
        value = eval(code, names)
    else:
        sys.stdin = io.TextIOWrapper(io.BytesIO(code.encode(errors="replace")), encoding="utf-8")
        kept, sys.stdout = sys.stdout, io.StringIO()
        try:
            exec(compile(source, "main.py", "exec"), {"__name__": "__main__"})
        except SystemExit:
            pass
        finally:
            captured, sys.stdout = sys.stdout, kept
        value = output_lines(captured.getvalue())
    return f"value\t{canonical(value)[:LONGEST]}\t{canonical(value, shown=True)[:SHOWN]}"


def evaluate(source: str, tests: list[tuple[str, str]], seconds: float) -> None:
    """Executes a program, then each test on it, up to the first that takes too long.

    Args:
        source: The program.
        tests: Kind and code of each: an expression, a statement, or the input of a run.
        seconds: Limit of processor time of each test.
    """
    channel = os.dup(1)
    silent = os.open("/dev/null", os.O_WRONLY)
    os.dup2(silent, 1)
    signal.signal(signal.SIGVTALRM, stop)
    names: dict[str, object] = {"__name__": "solution"}
    try:
        code = compile(source, "main.py", "exec")
        if any(kind != "input" for kind, _ in tests):
            exec(code, names)
    except BaseException as error:
        os.write(channel, f"-1\traised\t\t{explained(error)}\n".encode())
        os._exit(0)
    for number, (kind, text) in enumerate(tests):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            line, late = outcome(kind, text, source, names), False
        except BaseException as error:
            line, late = f"raised\t\t{explained(error)}", isinstance(error, TestTimeout)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        os.write(channel, f"{number}\t{line}\n".encode(errors="replace"))
        if late:
            break
    os._exit(0)
