"""The pending awaits of a run: every await has an owner and a deadline."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


class DeadlineExceeded(RuntimeError):
    """An await passed its deadline. The message lists all pending awaits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One pending await.

    Attributes:
        owner: The waiting task and branch, for messages.
        thing: What is awaited.
        since_s: Start of the wait on the monotonic clock, in seconds.
        deadline_s: Maximum duration of the wait, in seconds.
    """

    owner: str
    thing: str
    since_s: float
    deadline_s: float

    @property
    def overdue_s(self) -> float:
        """Seconds past the deadline; negative before the deadline."""
        return time.monotonic() - self.since_s - self.deadline_s


class Deadlines:
    """The pending awaits of a run."""

    def __init__(self) -> None:
        self._pending: dict[int, Wait] = {}
        self._ids = itertools.count()

    async def until(self, awaitable: Awaitable[Result], *, owner: str, thing: str, deadline_s: float) -> Result:
        """Await under a deadline.

        Raises:
            DeadlineExceeded: when the deadline passes; the message is the table of all pending waits.
        """
        deadline = asyncio.timeout(deadline_s)
        with self.during(owner=owner, thing=thing, deadline_s=deadline_s):
            try:
                async with deadline:
                    return await awaitable
            except TimeoutError as error:
                if not deadline.expired():
                    raise
                raise DeadlineExceeded(f"{owner} waited {deadline_s:g} s for {thing}\n{self.table()}") from error

    @contextmanager
    def during(self, *, owner: str, thing: str, deadline_s: float) -> Generator[None]:
        """Register a wait while a block runs. A passed deadline does not end the block: the watchdog handles it."""
        key = next(self._ids)
        self._pending[key] = Wait(owner=owner, thing=thing, since_s=time.monotonic(), deadline_s=deadline_s)
        try:
            yield
        finally:
            del self._pending[key]

    def overdue(self, grace_s: float = 0.0) -> list[Wait]:
        """Waits that are more than `grace_s` past their deadline, the most overdue first."""
        late = [wait for wait in list(self._pending.values()) if wait.overdue_s > grace_s]
        return sorted(late, key=lambda wait: -wait.overdue_s)

    def table(self, most: int = 20) -> str:
        """The pending waits as text, longest first."""
        now = time.monotonic()
        pending = sorted(self._pending.copy().values(), key=lambda wait: wait.since_s)
        lines = [
            f"  {now - wait.since_s:8.1f} s of {wait.deadline_s:g} s  {wait.owner}  <-  {wait.thing}"
            for wait in pending[:most]
        ]
        more = len(pending) - most
        return "\n".join(["waiting:", *(lines or ["  nothing"]), *([f"  and {more} more"] if more > 0 else [])])
