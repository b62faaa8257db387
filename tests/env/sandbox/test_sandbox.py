"""The sandbox under attack: nothing survives, the host is untouched, and every run ends in time."""

import os
import pickle
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from bough.env.sandbox import Ending, Sandbox, SandboxError, SandboxResult
from bough.env.sandbox import bubblewrap as bubblewrap_module
from bough.env.sandbox import cgroup as cgroup_module
from bough.env.sandbox import sandbox as sandbox_module
from bough.env.sandbox.bubblewrap import Privilege
from bough.env.sandbox.seccomp import ARCHITECTURES, CHECKED, REFUSED, seccomp_filter

pytestmark = pytest.mark.usefixtures("sandbox")

SYSTEM = "/usr/bin/python3"
WAYS = ["as started", "without a superuser"]
IN_S = 120.0
"""More than a busy machine needs for what takes a second."""


@pytest.fixture(params=WAYS)
def box(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox, as these tests were started, and as an ordinary user where that was the superuser.

    After the test no process is left that has its marker in its command or in its mounts.
    """
    tmp_path.chmod(0o755)
    found = Sandbox(wall_s=30, cpu_s=1, packages=(str(tmp_path),))
    if request.param != "as started":
        if os.geteuid() or not Path(SYSTEM).exists():
            pytest.skip("the tests run as an ordinary user, or without the system's Python")
        shared = Path(shutil.copytree(tmp_path, f"/tmp/bough-{os.getpid()}-{tmp_path.name}"))
        monkeypatch.setattr(sandbox_module, "_privilege", lambda _: Privilege.NOBODY)
        found = replace(found, python=SYSTEM, packages=(str(shared),))
    yield found
    assert not survivors(found.packages[0])
    if request.param != "as started":
        shutil.rmtree(found.packages[0])


def survivors(marker: str) -> list[str]:
    """The processes with the marker in their command or mounts."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if any(marker.encode() in (each / name).read_bytes() for name in ("cmdline", "mountinfo")):
                found.append(each.name)
        except OSError:
            continue
    return [each for each in found if int(each) != os.getpid()]


def runs_inside(process: str) -> bool:
    """Whether it is the interpreter of a sandbox: bubblewrap has done its part."""
    with suppress(OSError):
        about = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        return about["Name"].strip().startswith("python") and len(about["NSpid"].split()) > 1
    return False


def out(box: Sandbox, program: str) -> str:
    """What a program prints that exits without an error."""
    result = box.run(program)
    assert result.status == 0, result
    return result.stdout


def attempt(*statements: str) -> str:
    """A program that prints the error of each statement, or "done"."""
    return f"""
import os, sys, socket, ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
for statement in {statements!r}:
    try:
        exec(statement)
        print("done")
    except BaseException as error:
        print(type(error).__name__)
"""


def test_a_program_has_its_input_output_status_and_traceback(box: Sandbox) -> None:
    result = box.run("import sys; print(input() * 2); print('note', file=sys.stderr); sys.exit(3)", stdin="ab\n")
    assert result == SandboxResult(stdout="abab\n", stderr="note\n", ending=Ending.EXITED, status=3)
    assert not result.ok
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(FrozenInstanceError):
        result.status = 0  # type: ignore[misc]
    failed = box.run("def f(x):\n    return 1 / x\n\nprint('before')\nf(0)\n")
    assert (failed.stdout, failed.status) == ("before\n", 1)
    assert '  File "main.py", line 2, in f\n    return 1 / x\n' in failed.stderr
    assert "launch" not in failed.stderr
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_the_value_of_a_last_expression_is_printed_on_request(box: Sandbox) -> None:
    assert box.run("x = 20\nx + 1", echo=True).stdout == "21\n"
    assert box.run("x = 20\nx + 1").stdout == ""
    assert box.run("print(1)\nNone", echo=True).stdout == "1\n"
    assert box.run("x = 3", echo=True).stdout == ""


def test_equal_programs_print_equal_texts(box: Sandbox) -> None:
    program = "import random\nprint(random.random(), set('abcdefgh'))"
    assert box.run(program) == box.run(program)


@pytest.mark.parametrize(
    "program", ["x = (", "a\0b", "\udc80", "(" * 5000, "\n" * 10, "", "-" * 100_000 + "1", "#" * 10**6]
)
def test_garbage_as_a_program_is_a_result(program: str) -> None:
    result = Sandbox(packages=("/usr",)).run(program)
    assert result.ending in (Ending.EXITED, Ending.MEMORY, Ending.KILLED)


def test_a_program_uses_the_whole_standard_library(box: Sandbox) -> None:
    names = "json, re, math, decimal, sqlite3, zlib, ssl, ctypes, asyncio, threading, dataclasses, hashlib, lzma, uuid"
    program = (
        f"import {names}\n@dataclasses.dataclass\nclass A:\n    x: 'int'\nprint(A(1), asyncio.run(asyncio.sleep(0, 5)))"
    )
    assert out(box, program) == "A(x=1) 5\n"


def test_a_sandbox_imports_the_packages_it_was_given_and_no_other(box: Sandbox) -> None:
    (Path(box.packages[0]) / "extra_package.py").write_text("NAME = 'extra'")
    assert out(box, "import extra_package; print(extra_package.NAME)") == "extra\n"
    assert "ModuleNotFoundError" in box.run("import numpy").stderr


def test_fork_bombs(box: Sandbox) -> None:
    tries = attempt(
        "os.fork()",
        "import subprocess; subprocess.run([sys.executable, '-c', 'print(1)'])",
        "import multiprocessing; multiprocessing.get_context('fork').Process(target=print).start()",
        "import pty; pty.fork()",
        "os.posix_spawn(sys.executable, [sys.executable], {})",
        "call(56, 17, 0, 0, 0, 0)" if os.uname().machine == "x86_64" else "os.fork()",
        "call(435, 0, 88)",
    )
    assert {*out(box, tries).split()} == {"PermissionError", "OSError"}
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    assert box.run(bomb).ending is Ending.TIMEOUT


def test_thread_bombs(box: Sandbox) -> None:
    program = """
import threading, time
threading.stack_size(32768)
made = 0
try:
    while made < 3000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except RuntimeError:
    print(made)
"""
    assert 0 < int(out(box, program)) < 16


@pytest.mark.parametrize(
    "program",
    [
        "x = [0] * 10**9",
        "x = bytearray(10**10)",
        "x = []\nwhile True: x.append(bytearray(10**6))",
        "x = 'a'\nwhile True: x += x",
        "import mmap\nx = []\ntry:\n  while True: x.append(mmap.mmap(-1, 2**24))\nexcept OSError: raise MemoryError",
    ],
)
def test_memory_bombs(program: str) -> None:
    assert Sandbox(cpu_s=4).run(program).ending is Ending.MEMORY


def test_memory_that_the_limit_of_a_process_does_not_count(box: Sandbox) -> None:
    calls = [
        REFUSED[name][[*ARCHITECTURES].index(os.uname().machine)] for name in ("shmget", "memfd_create", "mq_open")
    ]
    statements = [f"call({number}, 0, 0, 0)" for number in calls]
    assert out(box, attempt(*statements)).split() == ["PermissionError"] * 3
    swallowed = "x = []\nwhile True:\n    try: x.append(bytearray(10**7))\n    except MemoryError: pass"
    assert box.run(swallowed).ending is Ending.TIMEOUT


@pytest.mark.parametrize("status", [0, 3, 137, 152, 200, 255])
def test_a_status_above_128_is_one(status: int) -> None:
    assert Sandbox().run(f"raise SystemExit({status})").status == status
    left = Sandbox().run(f"import os; os._exit({status})")
    assert left.status == status or left.ending in (Ending.KILLED, Ending.TIMEOUT), "as if by a signal"


def test_memory_of_the_kernel_counts(box: Sandbox) -> None:
    if cgroup_module._place() is None:
        pytest.skip("this machine lets the tests make no memory cgroup")
    files = "import os\nfor n in range(10**7): os.close(os.open(f'/tmp/{n}', os.O_CREAT | os.O_WRONLY))"
    begun = replace(box, cpu_s=60, wall_s=IN_S, memory_mib=40, disk_mib=1).run(files)
    assert begun.ending is Ending.MEMORY
    place = cgroup_module._place()
    assert place is not None
    assert not [*place[0].glob(f"bough-{os.getpid()}-*")], "the groups are removed"


def test_buffers_of_sockets_keep_their_size(box: Sandbox) -> None:
    program = """
import socket
one, other = socket.socketpair()
one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
    try:
        one.setsockopt(socket.SOL_SOCKET, option, 2**30)
    except PermissionError as error:
        print(type(error).__name__)
one.send(b"x")
print(other.recv(1))
"""
    assert out(box, program).split() == ["PermissionError"] * 4 + ["b'x'"]


ENDLESS = [
    "while True: pass",
    "import time; time.sleep(1000)",
    "import re; re.match('(a+)+b', 'a' * 40)",
    "x = 3 ** 10**8",
    "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "import threading\nfor _ in range(4): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()",
    "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()",
    "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])",
    "import os, time\nos.closerange(0, 100)\ntime.sleep(1000)",
]


def test_endless_programs_end_at_the_limits_of_wall_time_and_processor_time() -> None:
    with ThreadPoolExecutor(len(ENDLESS)) as pool:
        results = [*pool.map(Sandbox(wall_s=2, cpu_s=1).run, ENDLESS)]
    assert {result.ending for result in results} <= {Ending.TIMEOUT, Ending.KILLED}
    assert {result.status for result in results} == {None}


def test_wall_time_has_a_limit_of_its_own() -> None:
    begin = time.monotonic()
    assert Sandbox(wall_s=1, cpu_s=100).run("import time; time.sleep(1000)").ending is Ending.TIMEOUT
    assert time.monotonic() - begin < 30


def test_processor_time_has_a_limit_of_its_own() -> None:
    # A program that only this limit ends: a test has less than the other.
    assert Sandbox(wall_s=500, cpu_s=1).run("while True: pass").ending is Ending.TIMEOUT


def test_network(box: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0bough-{os.getpid()}")
        local.listen()
        port = server.getsockname()[1]
        statements = (
            f"socket.create_connection(('127.0.0.1', {port}), timeout=1)",
            "socket.create_connection(('1.1.1.1', 53), timeout=1)",
            "socket.getaddrinfo('example.com', 80)",
            f"socket.socket(socket.AF_UNIX).connect('\\0bough-{os.getpid()}')",
            "socket.socket(40, socket.SOCK_STREAM)",  # VSOCK reaches the host of a virtual machine.
            "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        )
        found = out(box, attempt(*statements)).split()
        assert found == ["ConnectionRefusedError", "OSError", "gaierror", "ConnectionRefusedError"] + [
            "OSError"
        ] * 3 + ["PermissionError"]
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_host_files_and_environment(box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path.parent / "secret"
    secret.write_text("secret")
    monkeypatch.setenv("BOUGH_SECRET", "secret")
    paths = [
        "/etc/shadow",
        "/etc/passwd",
        str(Path.home() / ".bashrc"),
        str(secret),
        "/proc/1/environ",
        "/sys",
        "/bin/sh",
    ]
    found = out(box, attempt(*(f"open({path!r})" for path in paths), "os.environ['BOUGH_SECRET']")).split()
    assert found == ["FileNotFoundError"] * len(paths) + ["KeyError"]
    assert sorted(eval(out(box, "import os; print(os.listdir('/dev'))"))) == ["null", "random", "urandom", "zero"]
    opened = """
import os
for number in range(3, 60):
    try:
        print(number, os.fstat(number).st_mode >> 12)
    except OSError:
        pass
"""
    assert re.fullmatch(r"(\d+ 1\n)?", out(box, opened)), "only the pipe of the report is open"


def test_writing_outside(box: Sandbox) -> None:
    program = """
import os
for folder, _, files in os.walk("/"):
    if folder != "/tmp" and not folder.startswith("/tmp/bough-"):
        for path in (f"{folder}/new", *(f"{folder}/{name}" for name in files[:3])):
            for flags in (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_RDWR):
                try:
                    os.open(path, flags)
                    print(path)
                except OSError:
                    pass
for name in ("mkdir", "unlink", "rmdir"):
    for path in ("/new", "/dev/null", os.__file__, os.path.dirname(os.__file__)):
        try:
            getattr(os, name)(path)
            print(name, path)
        except OSError:
            pass
"""
    written = {*out(replace(box, cpu_s=20, wall_s=40), program).split()}
    assert written <= {f"/dev/{name}" for name in ("null", "zero", "random", "urandom")}
    assert Path("/dev/null").is_char_device()


def test_full_disk(box: Sandbox) -> None:
    program = attempt(
        "open('/tmp/a', 'wb').write(bytes(2**20 * 12))",
        "open('/tmp/b', 'wb').write(bytes(2**20 * 12))",
        "open('/tmp/c', 'wb').truncate(2**40)",
        "[open(f'/tmp/d{n}', 'wb').write(bytes(2**20)) for n in range(100)]",
    )
    assert out(box, program).split() == ["done", "OSError", "OSError", "OSError"]
    (error,) = out(replace(box, disk_mib=0), attempt("open('/tmp/a', 'w')")).split()
    assert error in ("OSError", "PermissionError")
    assert out(box, "import os; print(os.listdir('/tmp'))").count("'a'") == 0, "the next run has an empty disk"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_huge_output(stream: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = Sandbox().run(f"import sys\nwhile True: sys.{stream}.write('x' * 10**6)")
    assert result.ending is Ending.OUTPUT
    assert getattr(result, stream) == "x" * 65536
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    exact = Sandbox(output_bytes=100).run("print('x' * 99)")
    assert (exact.ending, len(exact.stdout)) == (Ending.EXITED, 100)
    assert Sandbox(output_bytes=100).run("print('x' * 100)").ending is Ending.OUTPUT


def test_binary_output(box: Sandbox) -> None:
    assert out(box, r"import os; os.write(1, b'a\xff\0b')") == "a\ufffd\0b"


def test_a_program_that_kills(box: Sandbox) -> None:
    tries = attempt("os.kill(os.getppid(), 9)", f"os.kill({os.getpid()}, 9)", f"os.killpg({os.getpgrp()}, 9)")
    assert box.run(tries).stdout.split()[-2:] == ["ProcessLookupError"] * 2
    for program in ("import os; os.kill(os.getpid(), 9)", "import os; os.killpg(0, 9)", "import os; os.kill(-1, 9)"):
        assert box.run(program).ending in (Ending.KILLED, Ending.EXITED)
    assert box.run("import ctypes; ctypes.string_at(0)").ending is Ending.KILLED


def test_a_sandbox_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    sleep = f"Sandbox(wall_s=60, packages=({str(tmp_path)!r},)).run('import time; time.sleep(60)')"
    program = f"from bough.env.sandbox import Sandbox; {sleep}"
    process = subprocess.Popen([sys.executable, "-c", program])
    wait_until(lambda: any(map(runs_inside, survivors(str(tmp_path)))))
    process.kill()
    process.wait()
    wait_until(lambda: not survivors(str(tmp_path)))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + IN_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_privileges(box: Sandbox) -> None:
    ids = out(box, "import os; print(*os.getresuid(), *os.getresgid(), *os.getgroups())").split()
    assert "0" not in ids
    changes = attempt(
        "os.setuid(0)",
        "os.setgroups([0])",
        "os.chroot('/tmp')",
        "socket.sethostname('other')",
        "os.setpriority(os.PRIO_PROCESS, 0, -20)",
        "libc.unshare(0x10000000) and call(272, 0x10000000)",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
        "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0))",
    )
    assert "done" not in out(box, changes).split()
    assert out(box, changes).split()[-2] == "ValueError"


def test_every_call_of_the_filter_is_refused(box: Sandbox) -> None:
    column = [*ARCHITECTURES].index(os.uname().machine)
    numbers = [numbers[column] for numbers in REFUSED.values() if column < len(numbers)]
    program = attempt(*(f"call({number}, -1, -1, -1, -1, -1)" for number in numbers))
    assert out(box, program).split() == ["PermissionError"] * len(numbers)


def test_filters_of_other_architectures_have_equal_parts() -> None:
    for name in ARCHITECTURES:
        assert len(seccomp_filter(name)) % 8 == 0
    assert all(len(numbers) == 2 for numbers in CHECKED.values())
    with pytest.raises(SandboxError, match="got the architecture 'mips'; need one of x86_64, aarch64"):
        seccomp_filter("mips")


def test_many_runs_leave_no_process_and_no_open_file(box: Sandbox) -> None:
    box.run("")
    before = len(os.listdir("/proc/self/fd"))
    results: list[SandboxResult] = []
    threads = [threading.Thread(target=lambda: results.extend(box.run("print(1)") for _ in range(5))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [result.stdout for result in results] == ["1\n"] * 15
    assert len(os.listdir("/proc/self/fd")) == before


def test_settings() -> None:
    for name, value in (("wall_s", 0), ("cpu_s", 0), ("memory_mib", 8), ("disk_mib", -1), ("output_bytes", 0)):
        with pytest.raises(ValueError, match=rf"Sandbox\.{name}: got {value}"):
            Sandbox(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match="got the interpreter '/nowhere'"):
        Sandbox(python="/nowhere").run("")


@pytest.fixture
def unchecked() -> Iterator[None]:
    """The checks of the machine, which run again."""
    for cached in (bubblewrap_module.bubblewrap, sandbox_module._privilege):
        cached.cache_clear()
    yield
    for cached in (bubblewrap_module.bubblewrap, sandbox_module._privilege):
        cached.cache_clear()


@pytest.mark.usefixtures("unchecked")
def test_no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        SandboxError, match=r"got no program `bwrap`; need bubblewrap on Linux: .*apt-get install bubblewrap"
    ):
        Sandbox().run("print(1)")


@pytest.mark.usefixtures("unchecked")
def test_a_machine_without_namespaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match=r"No permissions to create new namespace.*need .*user namespaces"):
        Sandbox().run("print(1)")
