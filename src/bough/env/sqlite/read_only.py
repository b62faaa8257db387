"""A SQLite database for untrusted queries: read only, with limits of time, work and size."""

import threading
import weakref
from itertools import count
from pathlib import Path

from bough.env.sqlite.query import QueryError, QueryLimits, QueryResult
from bough.launch import CallEnded, bounded_call

EXECUTION = "bough.env.sqlite.execution"
"""The module that executes queries, in a child process."""

OPEN_S = 600.0
"""Maximum seconds to open a database."""

GRACE_S = 1.0
"""Seconds after `QueryLimits.seconds` in which SQLite can end a query by itself. It looks at the clock between its
instructions, and one instruction may take minutes."""

_NUMBERS = count()
_CLOSED: list[int] = []
"""Databases that this process does not use any more, and its child may have open."""


class ReadOnlyDatabase:
    """A SQLite database on which any thread executes queries.

    Queries are executed by a child process of this one (of 60 MB), which is killed when a query is late: no query, and
    no single instruction of SQLite, takes longer than its limit. One query at a time runs in a process, on all
    databases: the limit of memory then counts one query alone.

    SQLite's authorizer allows only SELECT, reads, recursion and the functions of `ALLOWED_FUNCTIONS`. So no statement
    writes, attaches a file, changes a setting or loads code. The present time is fixed, and there are no random
    numbers: the same query on the same database gives the same result.

    Examples:
        >>> database = ReadOnlyDatabase(b"")
        >>> database.run("select 1 as one").rows
        ((1,),)
    """

    def __init__(self, content: bytes | Path) -> None:
        """Opens a database.

        Args:
            content: The serialized database, or the path of a file that does not change while it is open.

        Raises:
            ValueError: when the file cannot be read or is no SQLite database.
        """
        self._content = content.absolute() if isinstance(content, Path) else content
        self._number = next(_NUMBERS)
        self._closing = weakref.finalize(self, _CLOSED.append, self._number)
        self._lock = threading.Lock()
        self._open()

    def run(self, sql: str, limits: QueryLimits | None = None) -> QueryResult:
        """Executes one query. Any text gives a result or a typed error, never an exception."""
        limits = limits or QueryLimits()
        with self._lock:
            try:
                while (result := self._run(sql, limits)) is None:
                    self._open()
            except CallEnded as ended:
                message = f"more than {limits.seconds:g} seconds" if ended.late else str(ended)
                return QueryResult(error=QueryError.TOO_MUCH_WORK, message=message)
        return result

    def close(self) -> None:
        """Closes the database."""
        self._closing()

    def _run(self, sql: str, limits: QueryLimits) -> QueryResult | None:
        return bounded_call(f"{EXECUTION}:run_query", self._number, sql, limits, seconds=limits.seconds + GRACE_S)

    def _open(self) -> None:
        if closed := [_CLOSED.pop() for _ in range(len(_CLOSED))]:
            bounded_call(f"{EXECUTION}:close_databases", closed, seconds=OPEN_S)
        bounded_call(f"{EXECUTION}:open_database", self._number, self._content, seconds=OPEN_S)
