"""A question about a database, with its gold query."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuestion:
    """A question, its gold query, and queries that are similar.

    Attributes:
        phrasings: The question in different words.
        sql: The gold query.
        wrong: Wrong queries. Each must have another result than the gold query, else the question is not used.
        equivalent: Right queries. Each must have the gold query's result, else the question has ties and is not used.
        lookups: Queries that show how the database stores the words of the question.
    """

    phrasings: tuple[str, ...]
    sql: str
    wrong: tuple[str, ...] = ()
    equivalent: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()


def literal(value: str | int) -> str:
    """A value as SQL writes it."""
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
