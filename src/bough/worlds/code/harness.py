"""Runs in a sandbox: executes a program, runs its tests, and writes one line for each.

This file is never imported: its text follows that of `canonical.py`, and a call of `evaluate` follows it.
"""

import io
import os
import signal
import sys

from bough.worlds.code.canonical import canonical, output_lines

SHOWN = 200
"""Longest text of an error or a value that a model reads, in characters."""

LONGEST = 10000
"""Longest value that is compared, in characters."""


INPUT = 0
"""Descriptor of standard input: a file in memory that this program may write."""


class Output(io.BytesIO):
    """The standard output of a run, which stays readable after the program closes it."""

    def close(self) -> None:
        """Does nothing."""


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
    value = eval(code, names) if kind == "call" else output_of(source)
    return f"value\t{canonical(value)[:LONGEST]}\t{canonical(value, shown=True)[:SHOWN]}"


def output_of(source: str) -> str:
    """Runs a program as a script, and returns its standard output."""
    written = Output()
    kept = sys.stdout
    sys.stdin = open(INPUT, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    try:
        exec(compile(source, "main.py", "exec"), module("__main__"))
    except SystemExit:
        pass
    finally:
        try:  # noqa: SIM105
            sys.stdout.flush()
        except Exception:
            pass  # the program closed or replaced it
        sys.stdout = kept
    return output_lines(written.getvalue().decode(errors="replace"))


def set_input(text: str, kept: int) -> None:
    """Makes a text the standard input, on its descriptor, which the last run may have closed.

    Args:
        text: The text.
        kept: A second descriptor of the file of standard input.
    """
    os.dup2(kept, INPUT)
    os.ftruncate(INPUT, 0)
    os.lseek(INPUT, 0, os.SEEK_SET)
    data = memoryview(text.encode(errors="replace"))
    while data:
        data = data[os.write(INPUT, data) :]
    os.lseek(INPUT, 0, os.SEEK_SET)


def module(name: str) -> dict[str, object]:
    """The names of a new module; dataclasses and pickle look it up in `sys.modules`."""
    sys.modules[name] = type(sys)(name)
    return sys.modules[name].__dict__


def evaluate(source: str, tests: list[tuple[str, str]], seconds: float) -> None:
    """Executes a program, then each test on it, up to the first that takes too long.

    Args:
        source: The program.
        tests: Kind and code of each: an expression, a statement, or the input of a run.
        seconds: Limit of processor time of each test.
    """
    channel, stdin = os.dup(1), os.dup(INPUT)
    silent = os.open("/dev/null", os.O_WRONLY)
    os.dup2(silent, 1)
    signal.signal(signal.SIGVTALRM, stop)
    names = module("solution")
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
            set_input(text if kind == "input" else "", stdin)
            line, late = outcome(kind, text, source, names), False
        except BaseException as error:
            line, late = f"raised\t\t{explained(error)}", isinstance(error, TestTimeout)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        os.write(channel, f"{number}\t{line}\n".encode(errors="replace"))
        if late:
            break
    os._exit(0)
