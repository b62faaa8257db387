"""The clause about memory in messages about killed processes."""

import os
import signal

from bough.units import GIB


def memory_note(status: int | None, remedy: str) -> str:
    """A clause for the end of a message: the memory of this machine, where a process was killed.

    Linux kills a process with SIGKILL when memory runs out, and writes it into its log alone.

    Args:
        status: The exit status, minus the signal where one killed it; None where unknown.
        remedy: What takes less memory.
    """
    if status != -signal.SIGKILL:
        return ""
    page, pages, free = (os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    return (
        f"; unless you killed it, the system did, for memory ({free * page / GIB:.1f} of {pages * page / GIB:.1f} GiB "
        f"of this machine are free now; see `dmesg`): {remedy}"
    )
