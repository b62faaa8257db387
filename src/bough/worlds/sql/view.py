"""The database and the queries so far as a picture, for the viewer."""

import re
from typing import cast

from bough.env import Env, State
from bough.env.state_value import value_of
from bough.env.svg import MARKED, PAPER, box, cut, document, text
from bough.worlds.sql.env import QuerySession, Sql
from bough.worlds.sql.questions import read_schema
from bough.worlds.sql.schema import Column, Table

IN_A_ROW, WIDTH, LINE, GAP = 3, 220, 22, 14
"""Tables in a row, and the width, height of a line, and distance of tables."""

QUERIES = 4
"""The last queries that are shown."""


def view_state(env: Env, state: State) -> str:
    """Returns the tables with their columns, those of the last query marked, and the last queries, as SVG."""
    session, sql = value_of(state, QuerySession, "Sql"), cast("Sql", env)
    tables = read_schema(sql.questions, str(session.task.data["database"])).tables
    used = {*re.findall(r"\w+", session.queries[-1].lower())} if session.queries else set[str]()
    parts: list[str] = []
    top = GAP
    for first in range(0, len(tables), IN_A_ROW):
        row = tables[first : first + IN_A_ROW]
        for at, table in enumerate(row):
            parts += _table(table, GAP + at * (WIDTH + GAP), top, marked=table.name.lower() in used)
        top += LINE * (1 + max(len(table.columns) for table in row)) + GAP
    width = GAP + min(IN_A_ROW, len(tables)) * (WIDTH + GAP)
    for number, query in [*enumerate(session.queries, start=1)][-QUERIES:]:
        parts.append(
            text(cut(f"{number}: {' '.join(query.split())}", width - 2 * GAP, 14), GAP, top + LINE / 2, size=14)
        )
        top += LINE
    return document(width, top + GAP, parts)


def _table(table: Table, x: float, y: float, *, marked: bool) -> list[str]:
    parts = box(table.name, x, y, WIDTH, LINE, fill=MARKED if marked else "#dcebf5", bold=marked, size=14)
    for at, column in enumerate(table.columns, start=1):
        parts += box(_column(column), x, y + at * LINE, WIDTH, LINE, fill=PAPER, size=13)
    return parts


def _column(column: Column) -> str:
    link = f" → {column.links_to}" if column.links_to else ""
    return f"{column.name} {column.type}".strip() + link
