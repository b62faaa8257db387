"""A SQLite database in memory that can be copied and pickled."""

import sqlite3
from typing import Any


class Database(sqlite3.Connection):
    """A SQLite database in memory, in autocommit mode: the state of an environment of tools.

    `copy.deepcopy` copies it and `pickle` stores it, with its `row_factory`. Functions and settings that were added to
    the connection are not copied.

    Examples:
        >>> database = Database("create table goods(name, price); insert into goods values ('tea', 3)")
        >>> database.execute("select price from goods").fetchone()
        (3,)
    """

    def __init__(self, script: str = "") -> None:
        """Makes a database.

        Args:
            script: SQL statements that fill it.
        """
        super().__init__(":memory:", isolation_level=None, check_same_thread=False)
        self.executescript(script)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.serialize(), self.row_factory)


def _restored(content: bytes, row_factory: Any) -> Database:
    database = Database()
    database.deserialize(content)
    database.row_factory = row_factory
    return database
