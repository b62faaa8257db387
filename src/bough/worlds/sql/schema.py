"""The schema of a database, as values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        name: Its name.
        type: Its type as the prompt shows it, such as "text"; "" where it is unknown.
        links_to: The referenced column, as "table.column"; "" for no foreign key.
    """

    name: str
    type: str = ""
    links_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table and its columns."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of a database."""

    tables: tuple[Table, ...]

    def describe(self, *, types: bool = True) -> str:
        """One line for each table, such as `pets(name text, owner int -> people.id)`.

        Args:
            types: Whether the lines contain the types of columns.
        """
        return "\n".join(
            f"{_quoted(table.name)}({', '.join(_described(each, types) for each in table.columns)})"
            for table in self.tables
        )

    @property
    def content(self) -> str:
        """The schema in a form that does not depend on the order of tables and columns, for splits."""
        return "\n".join(sorted(f"{table.name}({', '.join(sorted(map(str, table.columns)))})" for table in self.tables))


def _described(column: Column, types: bool) -> str:
    kind = f" {column.type}" if types and column.type else ""
    return f"{_quoted(column.name)}{kind}{f' -> {column.links_to}' if column.links_to else ''}"


def _quoted(name: str) -> str:
    """A name as SQL needs it: in quotation marks unless it is one word."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
