"""The command line of bubblewrap: namespaces, mounts and privileges of a sandbox."""

import os
import shutil
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from bough.env.sandbox.python_files import PythonFiles
from bough.env.sandbox.result import SandboxError

LAUNCHER = Path(__file__).with_name("launcher.py")
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
PACKAGES = "/packages"
DEVICES = ("null", "zero", "random", "urandom")
INSTALL = "install bubblewrap (`apt-get install bubblewrap`, `dnf install bubblewrap`)"
ENVIRONMENT = {
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "PATH": "/",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
}
"""The whole environment of a program. Sets of strings have the same order in every run."""


class Privilege(StrEnum):
    """How a sandbox gives up the privileges of the process that starts it."""

    USER = "user"
    """bubblewrap makes a user namespace; the program keeps the user id, without any capability."""
    ROOT = "root"
    """Started as root: bubblewrap mounts as root, then the program becomes a transient user."""
    NOBODY = "nobody"
    """Started as root without CAP_SYS_ADMIN: bubblewrap starts as user 65534 and makes a user namespace."""


@lru_cache(maxsize=1)
def bubblewrap() -> str:
    """Path of the program `bwrap`.

    Raises:
        SandboxError: when it is not installed.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(f"sandbox: got no program `bwrap`; need bubblewrap on Linux: {INSTALL}")
    return found


def privileges() -> Sequence[Privilege]:
    """The kinds of privilege to try, the safest first.

    The superuser of a user namespace is an ordinary user of the machine, so it may keep its user id.
    """
    if os.geteuid():
        return (Privilege.USER,)
    first = Path("/proc/self/uid_map").read_text(encoding="ascii").split()[:3]
    kept = () if first == ["0", "0", "4294967295"] else (Privilege.USER,)
    return (Privilege.ROOT, Privilege.NOBODY, *kept)


def mounts(files: PythonFiles, *, disk_bytes: int, packages: Sequence[str]) -> list[str]:
    """Arguments for the file system: the interpreter read-only, four devices, and /tmp in memory.

    Args:
        files: The interpreter.
        disk_bytes: Size of /tmp; 0 for none that can be written.
        packages: Further folders, read-only.
    """
    binds = [(folder, folder) for folder in (*files.folders, files.executable)]
    binds += [(path, at) for at, path in files.libraries]
    binds += [(path, f"{PACKAGES}/{number}") for number, path in enumerate(packages)]
    devices = [f"/dev/{name}" for name in DEVICES]
    found = ["--size", "65536", "--perms", "0755", "--tmpfs", "/"]
    if disk_bytes:
        found += ["--size", str(disk_bytes), "--perms", "1777", "--tmpfs", "/tmp"]
    else:
        found += ["--dir", "/tmp"]
    targets = [*(at for _, at in binds), *devices]
    for folder in sorted({str(parent) for at in targets for parent in Path(at).parents} - {"/", "/tmp"}):
        found += ["--dir", folder]  # bubblewrap's own are readable by their owner alone.
    for path, at in binds:
        found += ["--ro-bind", path, at]
    for folder in files.packages:
        found += ["--size", "4096", "--perms", "0555", "--tmpfs", folder, "--remount-ro", folder]
    for device in devices:
        found += ["--dev-bind", device, device]
    return [*found, "--remount-ro", "/"]


def command(
    files: PythonFiles,
    *,
    privilege: Privilege,
    seccomp: int,
    disk_bytes: int,
    packages: Sequence[str],
    arguments: Sequence[int],
    waits: Sequence[int],
) -> list[str]:
    """The command that starts the launcher in a sandbox.

    Args:
        files: The interpreter.
        privilege: How the sandbox gives up privileges.
        seccomp: Descriptor of the filter of system calls.
        disk_bytes: Size of /tmp.
        packages: Folders with packages.
        arguments: Arguments of the launcher.
        waits: Descriptors for the process id of the sandbox, and for the start of the program; () for no wait.
    """
    environment = {
        **ENVIRONMENT,
        "LD_LIBRARY_PATH": ":".join(sorted({str(Path(at).parent) for at, _ in files.libraries})),
        "PYTHONPATH": ":".join(f"{PACKAGES}/{number}" for number in range(len(packages))),
    }
    as_root = privilege is Privilege.ROOT
    capabilities = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if as_root else ()
    return [
        bubblewrap(),
        *NAMESPACES,
        *(() if as_root else ("--unshare-user", "--uid", "65534", "--gid", "65534")),
        *("--cap-drop", "ALL", *capabilities),
        *("--die-with-parent", "--hostname", "sandbox", "--clearenv"),
        *(word for name, value in environment.items() for word in ("--setenv", name, value)),
        *mounts(files, disk_bytes=disk_bytes, packages=packages),
        *("--chdir", "/tmp", "--seccomp", str(seccomp)),
        *(word for name, each in zip(("--info-fd", "--block-fd"), waits, strict=False) for word in (name, str(each))),
        *("--", files.executable, "-s", "-P", "-c", _launcher()),
        *map(str, arguments),
    ]


@lru_cache(maxsize=1)
def _launcher() -> str:
    return LAUNCHER.read_text(encoding="utf-8")
