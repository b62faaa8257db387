"""A clause about memory for messages about killed processes."""

import os
import signal

from bough.units import GIB


def memory_note(status: int | None, remedy: str) -> str:
    """The memory of this machine and a remedy, for the end of a message about a process that SIGKILL ended; else "".

    Linux kills a process with SIGKILL when memory runs out, and reports it only in the kernel's log.

    Args:
        status: The exit status, minus the signal where one killed it; None where unknown.
        remedy: What the user does to need less memory.
    """
    if status != -signal.SIGKILL:
        return ""
    page, pages, free = (os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    return (
        f"; unless you killed it, Linux did, for memory ({free * page / GIB:.1f} of {pages * page / GIB:.1f} GiB "
        f"of this machine are free now; see `dmesg`): {remedy}"
    )
