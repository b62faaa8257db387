"""One query and its result, as values."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeAlias

from bough.piece import Above, piece

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Value, ...]


class QueryError(StrEnum):
    """Why a query has no result."""

    NONE = ""
    INVALID = "invalid"
    """SQLite rejects the statement: syntax, unknown names, types."""
    DENIED = "denied"
    """The statement does more than read, or calls a function that is not allowed."""
    TOO_LONG = "too long"
    """The statement, or one value of its result, has too many bytes."""
    TOO_MUCH_WORK = "too much work"
    """More instructions than `QueryLimits.instructions`, more time or memory than allowed, or a text that SQLite would
    expand to too many tables."""


@piece
class QueryLimits:
    """Limits of one query.

    Attributes:
        instructions: Maximum number of instructions of SQLite's virtual machine, in steps of `INTERVAL`. The count is
            the same on every machine, so this limit normally ends a long query.
        seconds: Maximum wall time, for instructions that take long.
        memory_bytes: Maximum memory that the query adds to what SQLite uses, and maximum size of the rows that are
            read. The process that executes it gets at most three times as much and 64 MiB.
        rows: Maximum number of rows that are read; further rows are left.
        value_bytes: Maximum size of a value and of a row.
        sql_bytes: Maximum size of the statement.

    Raises:
        ValueError: when a limit is not positive.
    """

    instructions: Annotated[int, Above(0)] = 5_000_000
    seconds: Annotated[float, Above(0)] = 2.0
    memory_bytes: Annotated[int, Above(0)] = 100_000_000
    rows: Annotated[int, Above(0)] = 1000
    value_bytes: Annotated[int, Above(0)] = 20_000
    sql_bytes: Annotated[int, Above(0)] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, or its error.

    Attributes:
        columns: Names of the columns, as SQLite gives them.
        rows: In the order of the result.
        more: Whether rows were left because of `QueryLimits.rows`.
        error: `QueryError.NONE` for a query with a result, which may have no rows.
        message: SQLite's text of the error.
        reads: The columns that the statement names, as (table, column) in lower case; column "" for `count(*)`.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    more: bool = False
    error: QueryError = QueryError.NONE
    message: str = ""
    reads: frozenset[tuple[str, str]] = frozenset()

    @property
    def digest(self) -> str:
        """A short hash of the rows, whatever their order; "" for an error."""
        if self.error:
            return ""
        rows = "\n".join(sorted(map(repr, self.rows)))
        return hashlib.sha256(rows.encode(errors="backslashreplace")).hexdigest()[:16]
