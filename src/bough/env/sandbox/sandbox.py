"""Runs programs in a sandbox."""

import os
import platform
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import lru_cache
from select import select
from typing import Annotated

from bough.env.sandbox.bubblewrap import Privilege, bubblewrap, command, privileges
from bough.env.sandbox.cgroup import MemoryGroup, memory_group
from bough.env.sandbox.python_files import python_files
from bough.env.sandbox.result import Ending, SandboxError, SandboxResult
from bough.env.sandbox.seccomp import seccomp_filter
from bough.env.sandbox.watch import ProcessOutput, watch
from bough.piece import Above, AtLeast, piece
from bough.units import MIB

STARTED, OUT_OF_MEMORY = b"s", b"m"
"""Bytes that the launcher reports."""

EXITED = re.compile(rb"x(\d+)")
"""What it reports before the program exits with a status."""

SIGNALLED, SIGNALS = 128, 64
"""bubblewrap exits with 128 plus the signal that ended the program, 1 to 64."""

TRANSIENT_USERS = range(61184, 65520)
"""User ids that belong to no account; systemd reserves them. Limits of threads are by user id."""

CHILD = re.compile(rb'"child-pid":\s*(\d+)')
"""In what bubblewrap writes about a sandbox."""

KERNEL_BYTES = 32 * MIB
"""Memory that bubblewrap and the kernel have for a program, besides that of the program and its files."""

_CORES = threading.BoundedSemaphore(os.cpu_count() or 1)
"""As many programs run at a time as there are cores, so that the limit of their seconds does not depend on others."""

NOBODY = 65534
PIPES = ("stdout", "stderr", "report")
START_S = 60.0
"""Limit of the first start in seconds, which checks the machine."""


@piece
class Sandbox:
    """Runs Python programs with bubblewrap: no network, no files of the host, one process, limits of its resources.

    The program has its own namespaces, no capabilities, and a filter of system calls (seccomp). Its file system is
    read-only, with the interpreter and its standard library. It cannot start processes, so the limits of one process
    are its limits. They hold also when Bough runs as root: then the program runs as a transient user. Where Bough may
    make memory cgroups, memory of the kernel counts too: the program, its files and the kernel's memory for both have
    `memory_mib + disk_mib + 32` MiB. Elsewhere a program can take some hundred MiB of the kernel by empty files.

    Each run is a separate process, which ends with the run. `random` is seeded, and sets have a fixed order. A
    program that reads the clock or the system's random numbers is not deterministic.

    Linux on x86_64 or aarch64, with bubblewrap 0.8 or newer.

    Attributes:
        wall_s: Limit of wall time in seconds, with the start of the sandbox, which takes about 0.05 s.
        cpu_s: Limit of processor time in whole seconds, of all threads together.
        memory_mib: Limit of address space; the interpreter needs about 40.
        disk_mib: Size of /tmp, which is in memory; 0 for none.
        output_bytes: Limit of standard output and of standard error, each. A program that writes more is ended.
        threads: Maximum number of threads. As an ordinary user it holds from Linux 5.14 on.
        files: Maximum number of open files.
        packages: Folders of installed packages that programs can import, read-only; every user can read them.
        python: Path of the interpreter; "" for the one that runs. Its installed packages are not visible.

    Raises:
        ValueError: when a field is out of its range.
    """

    wall_s: Annotated[float, Above(0, "a number of seconds above 0")] = 10.0
    cpu_s: Annotated[int, AtLeast(1)] = 2
    memory_mib: Annotated[int, AtLeast(40)] = 256
    disk_mib: Annotated[int, AtLeast(0)] = 16
    output_bytes: Annotated[int, AtLeast(1)] = 65536
    threads: Annotated[int, AtLeast(1)] = 16
    files: Annotated[int, AtLeast(16)] = 64
    packages: tuple[str, ...] = ()
    python: str = ""

    def run(self, program: str, *, stdin: str = "", echo: bool = False) -> SandboxResult:
        """Runs a program and waits for its end.

        Nothing of the program is left when this returns.

        Args:
            program: Python source; anything else ends with a SyntaxError on standard error.
            stdin: Standard input.
            echo: Whether the value of a last expression is printed, as at a Python prompt.

        Raises:
            SandboxError: when the machine cannot run a sandbox.
        """
        privilege = _privilege(self.python)
        with _CORES:
            return _run(self, program, stdin=stdin, echo=echo, privilege=privilege)

    def check(self) -> None:
        """Starts a sandbox once per process.

        Raises:
            SandboxError: when the machine cannot run a sandbox.
        """
        _privilege(self.python)


def _run(sandbox: Sandbox, program: str, *, stdin: str, echo: bool, privilege: Privilege) -> SandboxResult:
    with memory_group((sandbox.memory_mib + sandbox.disk_mib) * MIB + KERNEL_BYTES) as group:
        output = _started(sandbox, program, stdin=stdin, echo=echo, privilege=privilege, group=group)
        return _result(output, out_of_memory=group is not None and group.killed)


def _started(
    sandbox: Sandbox, program: str, *, stdin: str, echo: bool, privilege: Privilege, group: MemoryGroup | None
) -> ProcessOutput:
    user = random.SystemRandom().choice(TRANSIENT_USERS) if privilege is Privilege.ROOT else 0
    limits = (
        user,
        sandbox.memory_mib * MIB,
        sandbox.cpu_s,
        max(1, sandbox.disk_mib) * MIB,
        sandbox.files,
        sandbox.threads if user or _counts_by_namespace() else 0,
    )
    files = python_files(sandbox.python)
    nobody = NOBODY if privilege is Privilege.NOBODY else None
    with (
        _memory_files(seccomp_filter(), _encoded(program), _encoded(stdin)) as (seccomp, code, inputs),
        _entry(group, sandbox.wall_s) as (enter, waits),
    ):
        pipes = {name: os.pipe() for name in PIPES}
        reported = pipes["report"][1]
        try:
            process = subprocess.Popen(
                command(
                    files,
                    privilege=privilege,
                    seccomp=seccomp,
                    disk_bytes=sandbox.disk_mib * MIB,
                    packages=sandbox.packages,
                    arguments=(reported, code, int(echo), *limits),
                    waits=waits,
                ),
                stdin=inputs,
                stdout=pipes["stdout"][1],
                stderr=pipes["stderr"][1],
                pass_fds=(seccomp, code, reported, *waits),
                start_new_session=True,
                user=nobody,
                group=nobody,
                extra_groups=None if nobody is None else (),
            )
        except BaseException:
            for read, _ in pipes.values():
                os.close(read)
            raise
        finally:
            for _, write in pipes.values():
                os.close(write)
        read = {name: ends[0] for name, ends in pipes.items()}
        try:
            enter()
        except OSError as error:
            watch(process, read, wall_s=0, limit=0)
            raise SandboxError(f"sandbox: got a memory cgroup that no process can enter ({error})") from error
        return watch(process, read, wall_s=sandbox.wall_s, limit=sandbox.output_bytes)


@contextmanager
def _entry(group: MemoryGroup | None, seconds: float) -> Generator[tuple[Callable[[], None], tuple[int, ...]]]:
    """What moves a sandbox into a group before its program starts, and the descriptors by which bubblewrap waits.

    bubblewrap writes the process id of the sandbox to the first, and reads the second before it starts the program.
    """
    if group is None:
        yield lambda: None, ()
        return
    (told, tells), (waits, starts) = os.pipe(), os.pipe()
    left = {told, tells, waits, starts}

    def enter() -> None:
        for descriptor in (tells, waits):
            os.close(descriptor)
            left.remove(descriptor)
        end, text = time.monotonic() + seconds, b""
        # bubblewrap closes it after the text, and when it fails.
        while select([told], [], [], max(0.0, end - time.monotonic()))[0] and (part := os.read(told, 4096)):
            text += part
        if found := CHILD.search(text):
            with suppress(ProcessLookupError):  # its status and output tell why it has ended
                group.add(int(found[1]))
                os.write(starts, b"s")

    try:
        yield enter, (tells, waits)
    finally:
        for descriptor in left:
            os.close(descriptor)


def _result(output: ProcessOutput, *, out_of_memory: bool) -> SandboxResult:
    report, status = output.written["report"], output.status
    stdout, stderr = (output.written[name].decode(errors="replace") for name in ("stdout", "stderr"))
    if not output.timed_out and not report.startswith(STARTED):
        raise SandboxError(
            f"sandbox: the start failed with status {status}: {(stderr.strip().splitlines() or ['no text'])[-1]}"
        )
    exited = EXITED.search(report)
    signalled = SIGNALLED < status <= SIGNALLED + SIGNALS and not (exited and int(exited[1]) == status)
    if output.timed_out or (signalled and status == SIGNALLED + signal.SIGXCPU):
        ending = Ending.TIMEOUT
    elif output.over_limit:
        ending = Ending.OUTPUT
    elif OUT_OF_MEMORY in report or out_of_memory:
        ending = Ending.MEMORY
    elif signalled:
        ending = Ending.KILLED
    else:
        return SandboxResult(stdout=stdout, stderr=stderr, ending=Ending.EXITED, status=status)
    return SandboxResult(stdout=stdout, stderr=stderr, ending=ending)


@lru_cache(maxsize=8)
def _privilege(python: str) -> Privilege:
    """The first way to give up privileges that works on this machine.

    Raises:
        SandboxError: when none works.
    """
    bubblewrap()
    problems: list[str] = []
    for privilege in privileges():
        try:
            first = Sandbox(python=python, wall_s=START_S, cpu_s=60)
            if _run(first, "", stdin="", echo=False, privilege=privilege).ok:
                return privilege
            problems.append(f"{privilege}: the first program failed")
        except (SandboxError, OSError) as error:
            problems.append(f"{privilege}: {str(error).removeprefix('sandbox: ')}")
    raise SandboxError(
        f"sandbox: bubblewrap fails on this machine ({'; '.join(dict.fromkeys(problems))}); need namespaces: as an "
        "ordinary user, unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, "
        "kernel.unprivileged_userns_clone=1); in a container, --privileged or --security-opt seccomp=unconfined with "
        "--cap-add SYS_ADMIN; and a Python that every user can read"
    )


@lru_cache(maxsize=1)
def _counts_by_namespace() -> bool:
    """Whether the kernel counts the threads of a user in each user namespace apart, as since Linux 5.14."""
    found = [int(part) for part in platform.release().replace("-", ".").split(".")[:2] if part.isdigit()]
    return tuple(found) >= (5, 14)


def _encoded(text: str) -> bytes:
    """UTF-8; lone surrogates become invalid bytes, which Python refuses as source."""
    return text.encode(errors="surrogatepass")


@contextmanager
def _memory_files(*contents: bytes) -> Generator[list[int]]:
    """Descriptors of files in memory, which are closed at the end."""
    opened: list[int] = []
    try:
        for content in contents:
            opened.append(os.memfd_create("bough"))
            with os.fdopen(os.dup(opened[-1]), "wb") as file:
                file.write(content)
            os.lseek(opened[-1], 0, os.SEEK_SET)
        yield opened
    finally:
        for descriptor in opened:
            os.close(descriptor)
