"""Generated databases: a schema, its rows and the spelling of its values, all from a seed."""

import random
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from bough.worlds.sql.entities import ENTITIES, Entity
from bough.worlds.sql.schema import Column, Schema, Table

Spelling: TypeAlias = Literal["plain", "upper", "short"]
"""The form in which a column stores its words: cat as "cat", "CAT" or "ca". Questions have the plain word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTable:
    """A table of a generated database.

    Attributes:
        table: Its name.
        entity: The words that its names and values are drawn from.
        spellings: The text columns in order, and how each stores its words.
        numbers: The number columns in order.
        link: The column that links to the parent; "" without one.
        rows: The rows, each with the plain words by column.
    """

    table: str
    entity: Entity
    spellings: Mapping[str, Spelling]
    numbers: tuple[str, ...]
    link: str = ""
    rows: tuple[Mapping[str, str | int], ...] = field(default=(), repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return ("id", "name", *self.spellings, *self.numbers, *([self.link] if self.link else []))

    def stored(self, column: str, value: str | int) -> str | int:
        """A value as the column stores it."""
        return spell(str(value), self.spellings[column]) if column in self.spellings else value


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTables:
    """The tables of a generated database.

    Attributes:
        child: The table that the questions are about.
        parent: The table that `child` links to; None in a database of one table.
    """

    child: GeneratedTable
    parent: GeneratedTable | None

    @property
    def schema(self) -> Schema:
        """The schema of the database."""
        return Schema(tables=tuple(self._shown(each) for each in (self.child, self.parent) if each is not None))

    def serialize(self) -> bytes:
        """The rows as a serialized SQLite database."""
        database = sqlite3.connect(":memory:", isolation_level=None)
        try:
            for made in (self.parent, self.child):
                if made is not None:
                    columns = ", ".join(f"{each.name} {each.type}" for each in self._shown(made).columns)
                    database.execute(f"create table {made.table} ({columns}, primary key (id))")
                    marks = ", ".join("?" * len(made.columns))
                    stored = [[made.stored(each, row[each]) for each in made.columns] for row in made.rows]
                    database.executemany(f"insert into {made.table} values ({marks})", stored)
            return database.serialize()
        finally:
            database.close()

    def _shown(self, made: GeneratedTable) -> Table:
        target = f"{self.parent.table}.id" if self.parent else ""
        columns = (
            Column(
                name=each,
                type="text" if each == "name" or each in made.spellings else "int",
                links_to=target if each == made.link else "",
            )
            for each in made.columns
        )
        return Table(name=made.table, columns=tuple(columns))


def spell(word: str, spelling: Spelling) -> str:
    """A word in a spelling."""
    return {"plain": word, "upper": word.upper(), "short": word[:2]}[spelling]


def draw_tables(seed: int, *, tables: int, columns: int, spellings: tuple[Spelling, ...]) -> GeneratedTables:
    """Draws the tables of a database, without rows; the same on every machine.

    Args:
        seed: Draws the tables, their columns and the spelling of values.
        tables: 1, or 2 for a table and the parent that it links to.
        columns: Text columns of a table, and number columns of a table.
        spellings: The spellings that each text column draws from.
    """
    rng = random.Random(f"sql schema {seed}")
    name = rng.choice([each for each, entity in ENTITIES.items() if tables == 1 or entity.parents])
    link, parent = rng.choice(sorted(ENTITIES[name].parents.items())) if tables > 1 else ("", "")
    return GeneratedTables(
        child=_table(rng, name, link, columns, spellings),
        parent=_table(rng, parent, "", columns, spellings) if parent else None,
    )


def fill_tables(tables: GeneratedTables, seed: int, *, rows: int, variant: int = 0) -> GeneratedTables:
    """The tables with rows.

    Names are different, and so are the numbers of a column: an order by a number has no ties. At least one row of the
    parent has no child.

    Args:
        tables: The tables without rows.
        seed: The seed of the tables.
        rows: Rows of the child; the parent has about half as many.
        variant: Draws the rows. Variants have one schema.
    """
    rng = random.Random(f"sql rows {seed} {variant}")
    parent = None if tables.parent is None else _filled(rng, tables.parent, max(4, rows // 2), 0)
    child = _filled(rng, tables.child, rows, 0 if parent is None else len(parent.rows) - 1)
    return GeneratedTables(child=child, parent=parent)


def _table(rng: random.Random, name: str, link: str, columns: int, spellings: tuple[Spelling, ...]) -> GeneratedTable:
    entity = ENTITIES[name]
    # A text column with the name of the link would be a second column of that name.
    categories = [each for each in sorted(entity.categories) if each != link]
    return GeneratedTable(
        table=name,
        entity=entity,
        spellings={each: rng.choice(spellings) for each in rng.sample(categories, columns)},
        numbers=tuple(rng.sample(sorted(entity.numbers), columns)),
        link=link,
    )


def _filled(rng: random.Random, made: GeneratedTable, count: int, parents: int) -> GeneratedTable:
    names = rng.sample(made.entity.names, count)
    numbers = {each: _different(rng, made.entity.numbers[each], count) for each in made.numbers}
    rows = tuple(
        {
            "id": row + 1,
            "name": names[row],
            **{each: rng.choice(made.entity.categories[each]) for each in made.spellings},
            **{each: numbers[each][row] for each in made.numbers},
            **({made.link: rng.randint(1, parents)} if made.link else {}),
        }
        for row in range(count)
    )
    return replace(made, rows=rows)


def _different(rng: random.Random, bounds: tuple[int, int], count: int) -> list[int]:
    return rng.sample(range(bounds[0], bounds[1] + 1), count)
