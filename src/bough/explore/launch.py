"""Starts a command with a memory limit. Runs as a script: `python launch.py MEMORY_BYTES COMMAND ARGUMENT ...`."""

import os
import resource
import sys

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def set_limits(memory_bytes: int) -> None:
    """Limit the address space of this process, unless 0; and end it when its parent dies, where the system can."""
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)


def main(memory_bytes: str, *words: str) -> None:
    """Set the limits, then become the command."""
    set_limits(int(memory_bytes))
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        sys.exit(f"cannot run {words[0]!r}: {error.strerror}; need a program on the PATH, or a path to one")


if __name__ == "__main__":
    main(*sys.argv[1:])
