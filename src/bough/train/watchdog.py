"""A thread that ends a process whose event loop hangs, and prints the pending operations."""

import faulthandler
import os
import sys
import threading
from types import TracebackType

from bough.rollout import Deadlines

EXIT_STUCK = 75
"""Exit status of a process with a missed deadline."""


class Watchdog:
    """Ends the process when a deadline is missed and the blocked event loop cannot raise the error itself.

    An operation that the event loop can end raises `DeadlineExceeded` at its deadline; the watchdog acts `grace_s`
    later.
    """

    def __init__(self, deadlines: Deadlines, *, grace_s: float, period_s: float = 1.0) -> None:
        self._deadlines = deadlines
        self._grace_s = grace_s
        self._period_s = period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bough-watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._period_s):
            late = self._deadlines.overdue(self._grace_s)
            if late:
                worst = late[0]
                print(
                    f"\nstuck: {worst.owner} is {worst.overdue_s:.0f} s past its deadline of {worst.deadline_s:g} s "
                    f"for {worst.thing}, and the event loop does not answer\n{self._deadlines.table()}",
                    file=sys.stderr,
                    flush=True,
                )
                faulthandler.dump_traceback(sys.stderr, all_threads=True)
                # The blocked thread cannot be interrupted, so no clean-up can run; checkpoints are always complete.
                os._exit(EXIT_STUCK)
