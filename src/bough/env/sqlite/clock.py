"""SQLite's date and time functions with a fixed present: a query has one result on every day and machine."""

import sqlite3
from collections.abc import Callable
from functools import lru_cache
from typing import Any

NOW = "2025-01-01 12:00:00"
"""The present, in UTC."""

FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime")
KEYWORDS = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
ZONES = {"localtime", "utc"}
"""Modifiers that depend on the machine's time zone; they change nothing here."""


def fix_clock(connection: sqlite3.Connection) -> None:
    """Replaces the functions of date and time of a connection by functions whose present is `NOW`."""
    clock = _clock()
    for name in FUNCTIONS:
        try:
            clock.execute(f"select {name}({_format(name)}'now')")
        except sqlite3.Error:  # an older SQLite lacks it
            continue
        connection.create_function(name, -1, _fixed(clock, name), deterministic=True)
    for keyword, name in KEYWORDS.items():
        connection.create_function(keyword, 0, _fixed(clock, name), deterministic=True)


@lru_cache(maxsize=1)
def _clock() -> sqlite3.Connection:
    """An empty database whose functions compute dates; all threads of a process share it."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _format(name: str) -> str:
    return "'%Y', " if name == "strftime" else ""


def _fixed(clock: sqlite3.Connection, name: str) -> Callable[..., Any]:
    """A function of date and time with the present `NOW`."""
    before = 1 if name == "strftime" else 0

    def computed(*values: object) -> Any:
        first, moment, modifiers = values[:before], values[before : before + 1] or ("now",), values[before + 1 :]
        kept = [each for each in modifiers if not (isinstance(each, str) and each.strip().lower() in ZONES)]
        present = isinstance(moment[0], str) and moment[0].strip().lower() == "now"
        arguments = [*first, NOW if present else moment[0], *kept]
        return clock.execute(f"select {name}({', '.join('?' * len(arguments))})", arguments).fetchone()[0]

    return computed
