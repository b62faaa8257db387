"""Commands in processes of their own, some at a time."""

import os
import subprocess
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bough.launch.keeper import kept_command
from bough.usercode.origin import shorten

LOOK_S = 0.05
"""Time between two looks at the processes."""

GRACE_S = 120.0
"""Time that a run has for its checkpoint when it is asked to end."""

MOST_CHARACTERS = 500
"""Longest reason of a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that ended.

    Attributes:
        name: The command's name.
        status: Its exit status; negative when a signal killed it.
        reason: Why it failed; "" when it did not.
        seconds: How long it ran.
    """

    name: str
    status: int
    reason: str
    seconds: float


def run_all(
    commands: Mapping[str, Sequence[str]], jobs: int, logs: Path, environment: Mapping[str, str]
) -> Generator[Ended]:
    """Run commands, at most `jobs` at a time, and yield each when it has ended.

    What they print is in `logs/NAME.log`, after what is there. Where this process is interrupted, or its end kills it,
    they get SIGTERM and `GRACE_S` for their end.

    Args:
        commands: Words by name, in the order of their start.
        jobs: Most processes at a time.
        logs: The folder of the logs.
        environment: Variables that are set for them.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting, running = deque(commands.items()), dict[str, tuple[subprocess.Popen[bytes], float, int]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, words = waiting.popleft()
                with (logs / f"{name}.log").open("ab") as log:
                    begin = log.tell()
                    process = subprocess.Popen(
                        kept_command(words, grace_s=GRACE_S),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, **environment},
                        # Ctrl-C of a terminal reaches this process alone, which then ends them once.
                        start_new_session=True,
                    )
                running[name] = process, time.monotonic(), begin
            for name, (process, since, begin) in [*running.items()]:
                if (status := process.poll()) is not None:
                    del running[name]
                    reason = _reason(logs / f"{name}.log", begin, status) if status else ""
                    yield Ended(name=name, status=status, reason=reason, seconds=time.monotonic() - since)
            time.sleep(LOOK_S)
    finally:
        for process, _, _ in running.values():
            process.terminate()
        for process, _, _ in running.values():
            process.wait()


def _reason(log: Path, begin: int, status: int) -> str:
    """The error that a command printed last, or its last line."""
    with log.open("rb") as file:
        file.seek(begin)
        printed = file.read().decode(errors="replace")
    errors = printed.rpartition("\nerror: ")[2] if "\nerror: " in f"\n{printed}" else ""
    lines = [line for line in printed.splitlines() if line.strip()]
    said = " ".join((errors or "".join(lines[-1:])).split()).removeprefix("error: ")
    killed = f"killed by signal {-status}" if status < 0 else f"status {status}"
    return shorten(f"{said} ({killed}; see {log})" if said else f"{killed}; see {log}", MOST_CHARACTERS)
