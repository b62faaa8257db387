"""The contract of a source of questions and databases, and the open databases of a process."""

import re
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from bough.env.env import Split
from bough.env.sqlite.read_only import ReadOnlyDatabase
from bough.tree import Task
from bough.worlds.sql.match import Match
from bough.worlds.sql.schema import Schema

QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]"
QUOTED_OR_COMMENT = re.compile(rf"({QUOTED})|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


class SqlSource(Hashable, Protocol):
    """A source of questions: a frozen dataclass whose fields are its settings.

    The data of a task:

        database  its name
        question  the text
        sql       the gold query
        hint      knowledge that the question needs, or ""
        lookups   queries that show how the database stores the words of the question
        tier      its difficulty
    """

    @property
    def match(self) -> Match:
        """The comparison of results, unless the environment sets it."""
        ...

    @property
    def data_hash(self) -> str:
        """Identifies the questions, for the run's manifest."""
        ...

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        ...

    def schema(self, database: str) -> Schema:
        """The schema of a database.

        Raises:
            ValueError: when there is no such database.
        """
        ...

    def contents(self, database: str) -> tuple[bytes | Path, ...]:
        """The database that queries read, then other rows in the same schema, on which an answer must match too.

        Raises:
            ValueError: when there is no such database.
        """
        ...


@lru_cache(maxsize=128)
def open_databases(questions: SqlSource, database: str) -> tuple[ReadOnlyDatabase, ...]:
    """The opened `SqlSource.contents` of a database; one process opens a database once.

    Raises:
        ValueError: when there is no such database.
    """
    return tuple(map(ReadOnlyDatabase, questions.contents(database)))


@lru_cache(maxsize=256)
def read_schema(questions: SqlSource, database: str) -> Schema:
    """`SqlSource.schema`, once a process."""
    return questions.schema(database)


def orders_rows(sql: str) -> bool:
    """Whether a query orders the rows of its result: an ORDER BY outside of quotation marks and parentheses."""
    plain = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]", "x", sql)
    while plain != (fewer := re.sub(r"\([^()]*\)", " ", plain)):
        plain = fewer
    return re.search(r"\border\s+by\b", plain, re.IGNORECASE) is not None


def normalise_sql(sql: str) -> str:
    """A query with single blanks, in lower case outside of quotation marks, without comments and a final semicolon."""
    plain = QUOTED_OR_COMMENT.sub(lambda found: found[1] or " ", sql)
    parts = re.split(f"({QUOTED})", plain.strip().rstrip(";"))
    plain = (part if number % 2 else re.sub(r"\s+", " ", part).lower() for number, part in enumerate(parts))
    return "".join(plain).strip()
