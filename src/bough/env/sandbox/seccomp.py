"""A filter of system calls for the program in a sandbox, as a classic BPF program."""

import errno
import platform
import struct
from collections.abc import Mapping

from bough.env.sandbox.result import SandboxError

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's number of each architecture. The columns of `REFUSED` and `CHECKED` are in this order."""

REFUSED: Mapping[str, tuple[int, ...]] = {
    # New processes and namespaces. aarch64 has neither `fork` nor `vfork`.
    "fork": (57,),
    "vfork": (58,),
    "unshare": (272, 97),
    "setns": (308, 268),
    # Memory that the limit of a process does not count.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # File systems.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Parts of the kernel with a large attack surface.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "personality": (135, 92),
    "seccomp": (317, 277),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "iopl": (172,),
    "ioperm": (173,),
}
"""Calls that fail with EPERM, with their number on each architecture."""

CHECKED: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220),
    "socket": (41, 198),
    "clone3": (435, 435),
    "setsockopt": (54, 208),
}
"""Calls that depend on their arguments. `clone3` fails with ENOSYS, because its flags are in memory; libc then calls
`clone`."""

THREAD = 0x00010000
"""Flag of `clone` for a thread."""

NAMESPACES = 0x7E020080
"""Flags of `clone` for new namespaces."""

FAMILIES = (1, 2, 10)
"""Families of `socket`: UNIX, IPv4, IPv6. Others, such as VSOCK, are not bound to a network namespace."""

OPTIONS = (7, 8, 32, 33)
"""Options of SOL_SOCKET with the sizes of buffers, in the kernel's memory: they stay as they are."""

SOL_SOCKET = 1

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16
"""Offsets in the kernel's `seccomp_data`. `ARGUMENT` is the lower half of the first argument."""

EACH = 8
"""Bytes of an argument."""


def seccomp_filter(architecture: str = "") -> bytes:
    """Returns the filter: it refuses new processes and the calls of `REFUSED`, and allows every other call.

    Threads are allowed. A program is one process, so the limits of a process are the limits of the program. Unlike the
    limit of processes, the filter also holds for the superuser.

    Args:
        architecture: As in `platform.machine()`; "" for this machine.

    Raises:
        SandboxError: when the architecture is not known.
    """
    name = architecture or platform.machine()
    if name not in ARCHITECTURES:
        raise SandboxError(f"sandbox: got the architecture {name!r}; need one of {', '.join(ARCHITECTURES)}")
    column = [*ARCHITECTURES].index(name)
    clone, socket, clone3, setsockopt = (numbers[column] for numbers in CHECKED.values())
    refuse, absent = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
    code = [
        _op(LOAD, ARCHITECTURE),
        _op(EQUAL, ARCHITECTURES[name], then=1),
        _op(RETURN, KILL),
        _op(LOAD, NUMBER),
        _op(AT_LEAST, 0x40000000, otherwise=1),  # The x32 calls of x86_64.
        _op(RETURN, absent),
        _op(EQUAL, clone3, otherwise=1),
        _op(RETURN, absent),
    ]
    for numbers in REFUSED.values():
        if column < len(numbers):
            code += [_op(EQUAL, numbers[column], otherwise=1), _op(RETURN, refuse)]
    code += [
        _op(EQUAL, setsockopt, otherwise=6 + len(OPTIONS)),
        _op(LOAD, ARGUMENT + EACH),
        _op(EQUAL, SOL_SOCKET, then=1),
        _op(RETURN, ALLOW),
        _op(LOAD, ARGUMENT + 2 * EACH),
        *(_op(EQUAL, option, then=len(OPTIONS) - index) for index, option in enumerate(OPTIONS)),
        _op(RETURN, ALLOW),
        _op(RETURN, refuse),
        _op(EQUAL, clone, otherwise=5),
        _op(LOAD, ARGUMENT),
        _op(ANY_BIT, NAMESPACES, then=1),
        _op(ANY_BIT, THREAD, then=1),
        _op(RETURN, refuse),
        _op(RETURN, ALLOW),
        _op(EQUAL, socket, then=1),
        _op(RETURN, ALLOW),
        _op(LOAD, ARGUMENT),
        *(_op(EQUAL, family, then=len(FAMILIES) - index) for index, family in enumerate(FAMILIES)),
        _op(RETURN, REFUSE | errno.EAFNOSUPPORT),
        _op(RETURN, ALLOW),
    ]
    return b"".join(code)


def _op(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise` count the instructions that a comparison skips."""
    return struct.pack("<HBBI", code, then, otherwise, value)
