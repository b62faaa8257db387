"""The result of a program in a sandbox."""

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """Why a program ended."""

    EXITED = "exited"
    """It returned or raised; `status` is its exit status."""
    TIMEOUT = "timeout"
    """It reached the limit of wall time or of processor time."""
    MEMORY = "memory"
    """It raised a MemoryError at the limit of memory, or the kernel ended it at the limit of its cgroup."""
    OUTPUT = "output"
    """It wrote more than the limit of output."""
    KILLED = "killed"
    """A signal ended it: a crash of the interpreter, the kernel, or the program itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """The output of a program, and its end.

    Attributes:
        stdout: Standard output, cut at the limit; bytes that are not UTF-8 are replaced.
        stderr: Standard error, likewise.
        ending: Why the program ended.
        status: The exit status of a program that `EXITED`; None for every other ending.
    """

    stdout: str
    stderr: str
    ending: Ending
    status: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the program exited with status 0."""
        return self.status == 0


class SandboxError(RuntimeError):
    """The machine cannot run a sandbox. The text has the cause and a remedy. It is never about the program."""
