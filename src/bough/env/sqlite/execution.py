"""Executes untrusted SQL queries in this process, with limits of work and size."""

import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bough.env.sqlite.clock import FUNCTIONS, KEYWORDS, fix_clock
from bough.env.sqlite.expansion import Block, database_views, too_large
from bough.env.sqlite.memory import lift_limit, limit_memory, memory_meter
from bough.env.sqlite.query import QueryError, QueryLimits, QueryResult, Row
from bough.units import MIB

INTERVAL = 50
"""SQLite instructions between two checks of the limits. One instruction of the worst kind takes some milliseconds."""

COPIES = 3
"""Memory of this process in units of `QueryLimits.memory_bytes`: SQLite's, the rows, and the message with the rows."""

SPARE_BYTES = 64 * MIB
"""Address space for Python and its allocator besides."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED_FUNCTIONS = _names(
    "abs acos asin atan atan2 avg ceil ceiling char coalesce concat concat_ws cos count cume_dist degrees "
    "dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json json_array "
    "json_array_length json_each json_extract json_group_array json_group_object json_object json_quote json_tree "
    "json_type json_valid lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim max min "
    "mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote radians rank replace round "
    "row_number rtrim sign sin sqrt string_agg substr substring sum tan total trim trunc typeof unicode unlikely "
    "upper -> ->> "
) | {*FUNCTIONS, *KEYWORDS}
"""Functions without side effects whose value depends on their arguments alone."""


@dataclass(slots=True)
class _Watch:
    """Counts the instructions of the present query."""

    limits: QueryLimits
    meter: Callable[[], int]
    begun_bytes: int
    deadline: float
    instructions: int = 0
    exceeded: str = ""
    denied: str = ""
    reads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def check(self) -> int:
        self.instructions += INTERVAL
        if self.instructions > self.limits.instructions:
            self.exceeded = f"more than {self.limits.instructions:,} instructions"
        elif time.monotonic() > self.deadline:
            self.exceeded = f"more than {self.limits.seconds:g} seconds"
        elif self.meter() - self.begun_bytes > self.limits.memory_bytes:
            self.exceeded = f"more than {self.limits.memory_bytes:,} bytes of memory"
        return int(bool(self.exceeded))

    def authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            self.reads.add(((first or "").lower(), (second or "").lower()))
            return sqlite3.SQLITE_OK
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() in ALLOWED_FUNCTIONS:
                return sqlite3.SQLITE_OK
            self.denied = f"the function {second} is not allowed"
        self.denied = self.denied or "only queries that read are allowed"
        return sqlite3.SQLITE_DENY


_OPEN: dict[int, "OpenDatabase"] = {}
"""The open databases of this process, by the number that its parent gave them."""


def open_database(number: int, content: bytes | Path) -> None:
    """Opens a database; see `ReadOnlyDatabase`."""
    lift_limit()
    _OPEN[number] = OpenDatabase(content)


def run_query(number: int, sql: str, limits: QueryLimits) -> QueryResult | None:
    """The result of a query on an open database; None where the database is not open."""
    database = _OPEN.get(number)
    limit_memory(COPIES * limits.memory_bytes + SPARE_BYTES)
    return None if database is None else database.run(sql, limits)


def close_databases(numbers: Sequence[int]) -> None:
    """Closes databases, as far as they are open."""
    for number in numbers:
        if (database := _OPEN.pop(number, None)) is not None:
            database.close()


class OpenDatabase:
    """A connection to a database in this process, for trusted queries; see `ReadOnlyDatabase` for others."""

    def __init__(self, content: bytes | Path) -> None:
        self._connection = _connect(content)
        self._connection.text_factory = lambda text: text.decode(errors="replace")  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
        # Sorting stays in memory: no temporary files.
        self._connection.execute("pragma temp_store = memory")
        self._views = _views(self._connection)
        fix_clock(self._connection)
        for limit in (sqlite3.SQLITE_LIMIT_ATTACHED, sqlite3.SQLITE_LIMIT_WORKER_THREADS):
            self._connection.setlimit(limit, 0)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 100_000)

    def run(self, sql: str, limits: QueryLimits) -> QueryResult:
        """Executes one query. Any text gives a result or a typed error, never an exception."""
        if len(sql.encode(errors="replace")) > limits.sql_bytes:
            message = f"the query has more than {limits.sql_bytes:,} bytes"
            return QueryResult(error=QueryError.TOO_LONG, message=message)
        if message := too_large(sql, self._views):
            return QueryResult(error=QueryError.TOO_MUCH_WORK, message=message)
        connection, meter = self._connection, memory_meter()
        deadline = time.monotonic() + limits.seconds
        watch = _Watch(limits=limits, meter=meter, begun_bytes=meter(), deadline=deadline)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes)
        connection.set_authorizer(watch.authorize)
        connection.set_progress_handler(watch.check, INTERVAL)
        try:
            return _fetch(connection, sql, watch)
        except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError, OverflowError, MemoryError) as error:
            return _failed(error, watch)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()


def connect_file(file: Path) -> sqlite3.Connection:
    """Opens a database file that does not change, read only and without locks.

    Raises:
        ValueError: when there is no such file, or a journal beside it has changes that the file lacks.
    """
    if not file.is_file():
        raise ValueError(f"{file}: got no file; need a SQLite database")
    for journal in (file.with_name(file.name + end) for end in ("-wal", "-journal")):
        if _has_changes(journal):
            raise ValueError(
                f"{file}: got {journal.name} beside it, with changes that the file lacks; need the whole database in "
                f"one file; close the programs that use it, then do: sqlite3 {file.name} 'pragma journal_mode=delete'"
            )
    place = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
    # Without the cache of statements the authorizer reads every statement.
    return sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0)


def _has_changes(journal: Path) -> bool:
    """Whether a journal exists that was not applied; an applied one is empty or begins with zeros."""
    if not journal.is_file():
        return False
    with journal.open("rb") as stream:
        return any(stream.read(8))


def _connect(content: bytes | Path) -> sqlite3.Connection:
    if isinstance(content, Path):
        connection = connect_file(content)
    else:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
        if content:
            connection.deserialize(content)
    try:
        connection.execute("select count(*) from sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        place = content if isinstance(content, Path) else "the serialized database"
        raise ValueError(f"{place}: got {error}; need a SQLite database") from error
    return connection


def _views(connection: sqlite3.Connection) -> Block:
    return database_views(dict(connection.execute("select name, sql from sqlite_master where type = 'view'")))


def _fetch(connection: sqlite3.Connection, sql: str, watch: _Watch) -> QueryResult:
    cursor = connection.execute(sql)
    try:
        if cursor.description is None:
            return QueryResult(error=QueryError.INVALID, message="got no query")
        rows: list[Row] = []
        row_bytes = 0
        for row in cursor:
            if len(rows) == watch.limits.rows:
                break
            row_bytes += sys.getsizeof(row) + sum(map(sys.getsizeof, row))
            if row_bytes > watch.limits.memory_bytes:
                watch.exceeded = f"more than {watch.limits.memory_bytes:,} bytes of rows"
                raise MemoryError
            rows.append(row)
        else:
            row = None
        columns = tuple(str(each[0]) for each in cursor.description)
        return QueryResult(columns=columns, rows=tuple(rows), more=row is not None, reads=frozenset(watch.reads))
    finally:
        cursor.close()


def _failed(error: Exception, watch: _Watch) -> QueryResult:
    message = str(error) or type(error).__name__
    kind = QueryError.INVALID
    if watch.exceeded or isinstance(error, MemoryError):
        kind, message = QueryError.TOO_MUCH_WORK, watch.exceeded or "too much memory"
    elif watch.denied:
        kind, message = QueryError.DENIED, watch.denied
    elif isinstance(error, sqlite3.DataError) or "too big" in message:
        kind, message = QueryError.TOO_LONG, f"a value has more than {watch.limits.value_bytes:,} bytes"
    elif isinstance(error, UnicodeError):
        message = "the query is no valid text"
    return QueryResult(error=kind, message=message.encode(errors="replace").decode(), reads=frozenset(watch.reads))
