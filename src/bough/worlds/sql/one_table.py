"""Templates of questions about one table: filters, aggregates, and orders."""

import random
from dataclasses import dataclass

from bough.worlds.sql.generated_tables import GeneratedTable, GeneratedTables
from bough.worlds.sql.question import SqlQuestion, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on a column.

    Attributes:
        words: How a question names it, such as "kind cat".
        sql: The condition, such as "kind = 'CAT'".
        lookup: The query that shows how the column stores its words.
    """

    words: str
    sql: str
    lookup: str


def category_condition(rng: random.Random, made: GeneratedTable, *, table: str = "") -> Condition:
    """A text column equals the word of a row.

    Args:
        rng: Draws the column and the row.
        made: The table.
        table: Its name, where the condition must have it; "" otherwise.
    """
    column = rng.choice([*made.spellings])
    word = rng.choice(made.rows)[column]
    name = f"{table}.{column}" if table else column
    return Condition(
        words=f"{column} {word}",
        sql=f"{name} = {literal(made.stored(column, word))}",
        lookup=f"select distinct {column} from {made.table}",
    )


def filter_category(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names with a word in a text column."""
    made = tables.child
    asked = category_condition(rng, made)
    select = f"select name from {made.table}"
    return SqlQuestion(
        phrasings=(f"which {made.table} have {asked.words}", f"list the {made.table} with {asked.words}"),
        sql=f"{select} where {asked.sql}",
        wrong=(select, f"{select} where not {asked.sql}"),
        lookups=(asked.lookup,),
    )


def filter_number(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names with a number above or below a bound."""
    made = tables.child
    column = rng.choice(made.numbers)
    sign, words = rng.choice(((">", ("over", "more than")), ("<", ("under", "less than"))))
    bound = literal(rng.choice(made.rows)[column])
    select = f"select name from {made.table}"
    other = "<" if sign == ">" else ">"
    return SqlQuestion(
        phrasings=tuple(f"{start} {column} {word} {bound}" for start, word in zip(_starts(made), words, strict=True)),
        sql=f"{select} where {column} {sign} {bound}",
        wrong=(select, f"{select} where {column} {other} {bound}", f"{select} where {column} {sign}= {bound}"),
    )


def filter_name(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """A value of the row with a name."""
    made = tables.child
    column = rng.choice([*made.spellings, *made.numbers])
    name = rng.choice(made.rows)["name"]
    select = f"select {column} from {made.table}"
    return SqlQuestion(
        phrasings=(
            f"what {column} has the {made.entity.one} {name}",
            f"give the {column} of the {made.entity.one} {name}",
        ),
        sql=f"{select} where name = {literal(name)}",
        wrong=(select, f"select name from {made.table} where name = {literal(name)}"),
    )


def filter_both(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names with a word in a text column and a number above a bound."""
    made = tables.child
    asked = category_condition(rng, made)
    column = rng.choice(made.numbers)
    bound = literal(rng.choice(made.rows)[column])
    select = f"select name from {made.table} where"
    return SqlQuestion(
        phrasings=tuple(
            f"{start} {asked.words} and {column} {word} {bound}"
            for start, word in zip(_starts(made), ("over", "more than"), strict=True)
        ),
        sql=f"{select} {asked.sql} and {column} > {bound}",
        wrong=(f"{select} {asked.sql}", f"{select} {column} > {bound}", f"{select} {asked.sql} or {column} > {bound}"),
        lookups=(asked.lookup,),
    )


def count_category(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The number of rows with a word in a text column."""
    made = tables.child
    asked = category_condition(rng, made)
    select = f"select count(*) from {made.table}"
    return SqlQuestion(
        phrasings=(f"how many {made.table} have {asked.words}", f"count the {made.table} with {asked.words}"),
        sql=f"{select} where {asked.sql}",
        wrong=(select, f"{select} where not {asked.sql}"),
        lookups=(asked.lookup,),
    )


def aggregate(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """An aggregate of a number over the rows with a word in a text column."""
    made = tables.child
    asked = category_condition(rng, made)
    column = rng.choice(made.numbers)
    function, word = rng.choice((("avg", "average"), ("sum", "total"), ("max", "greatest"), ("min", "least")))
    source = f"from {made.table}"
    return SqlQuestion(
        phrasings=(
            f"what {word} {column} have the {made.table} with {asked.words}",
            f"give the {word} {column} of {made.table} with {asked.words}",
        ),
        sql=f"select {function}({column}) {source} where {asked.sql}",
        wrong=(
            f"select {function}({column}) {source}",
            f"select {column} {source} where {asked.sql}",
            f"select count(*) {source} where {asked.sql}",
        ),
        lookups=(asked.lookup,),
    )


def order_first(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The names with the greatest or least number."""
    made = tables.child
    column = rng.choice(made.numbers)
    count = rng.choice((1, 2, 3))
    direction, word = rng.choice(((" desc", "greatest"), ("", "least")))
    start = f"select name from {made.table} order by {column}"
    things = f"{count} {made.table}" if count > 1 else made.entity.one
    return SqlQuestion(
        phrasings=(f"which {things} with the {word} {column}", f"name the {things} of {word} {column} in order"),
        sql=f"{start}{direction} limit {count}",
        wrong=(
            f"{start}{'' if direction else ' desc'} limit {count}",
            f"select name from {made.table} limit {count}",
            f"{start}{direction}",
        ),
    )


def order_filtered(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The name with the greatest number among the rows with a word in a text column."""
    made = tables.child
    asked = category_condition(rng, made)
    column = rng.choice(made.numbers)
    select = f"select name from {made.table}"
    order = f"order by {column} desc limit 1"
    return SqlQuestion(
        phrasings=(
            f"which {made.entity.one} with {asked.words} has the greatest {column}",
            f"name the {made.entity.one} of greatest {column} with {asked.words}",
        ),
        sql=f"{select} where {asked.sql} {order}",
        wrong=(
            f"{select} {order}",
            f"{select} where {asked.sql}",
            f"{select} where {asked.sql} order by {column} limit 1",
        ),
        lookups=(asked.lookup,),
    )


def distinct(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The different words of a text column among rows with a number above a bound."""
    made = tables.child
    column, number = rng.choice([*made.spellings]), rng.choice(made.numbers)
    bound = literal(rng.choice(made.rows)[number])
    source = f"from {made.table}"
    return SqlQuestion(
        phrasings=(
            f"which different {column} have {made.table} with {number} over {bound}",
            f"list each {column} once of {made.table} with {number} more than {bound}",
        ),
        sql=f"select distinct {column} {source} where {number} > {bound}",
        wrong=(f"select distinct {column} {source}", f"select {column} {source} where {number} > {bound}"),
    )


def _starts(made: GeneratedTable) -> tuple[str, str]:
    return f"which {made.table} have", f"list the {made.table} with"
