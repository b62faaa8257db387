"""Templates of questions about a table and its parent: joins, groups, and nested queries."""

import random

from bough.worlds.sql.generated_tables import GeneratedTable, GeneratedTables
from bough.worlds.sql.one_table import category_condition
from bough.worlds.sql.question import SqlQuestion, literal


def join_filter(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names of children whose parent has a word in a text column."""
    child, parent = _both(tables)
    asked = category_condition(rng, parent, table=parent.table)
    select = f"select {child.table}.name from {_join(tables)}"
    return SqlQuestion(
        phrasings=(
            f"which {child.table} have a {child.link} with {asked.words}",
            f"list the {child.table} whose {child.link} has {asked.words}",
        ),
        sql=f"{select} where {asked.sql}",
        wrong=(
            select,
            f"{select} where not {asked.sql}",
            f"select {parent.table}.name from {_join(tables)} where {asked.sql}",
        ),
        lookups=(asked.lookup,),
    )


def join_value(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """A value of the parent of the child with a name."""
    child, parent = _both(tables)
    column = rng.choice(["name", *parent.spellings, *parent.numbers])
    name = rng.choice(child.rows)["name"]
    select = f"select {parent.table}.{column} from {_join(tables)}"
    return SqlQuestion(
        phrasings=(
            f"what {column} has the {child.link} of the {child.entity.one} {name}",
            f"give the {column} of the {child.link} of {child.entity.one} {name}",
        ),
        sql=f"{select} where {child.table}.name = {literal(name)}",
        wrong=(select, f"select {child.table}.name from {_join(tables)} where {child.table}.name = {literal(name)}"),
    )


def join_count(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The number of children whose parent has a word in a text column."""
    child, parent = _both(tables)
    asked = category_condition(rng, parent, table=parent.table)
    select = f"select count(*) from {_join(tables)}"
    return SqlQuestion(
        phrasings=(
            f"how many {child.table} have a {child.link} with {asked.words}",
            f"count the {child.table} whose {child.link} has {asked.words}",
        ),
        sql=f"{select} where {asked.sql}",
        wrong=(select, f"select count(*) from {parent.table} where {asked.sql}", f"{select} where not {asked.sql}"),
        lookups=(asked.lookup,),
    )


def join_order(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The child with the greatest number whose parent has a word in a text column."""
    child, parent = _both(tables)
    asked = category_condition(rng, parent, table=parent.table)
    column = rng.choice(child.numbers)
    select = f"select {child.table}.name from {_join(tables)}"
    order = f"order by {child.table}.{column} desc limit 1"
    return SqlQuestion(
        phrasings=(
            f"which {child.entity.one} of a {child.link} with {asked.words} has the greatest {column}",
            f"name the {child.entity.one} of greatest {column} whose {child.link} has {asked.words}",
        ),
        sql=f"{select} where {asked.sql} {order}",
        wrong=(f"{select} {order}", f"{select} where {asked.sql}"),
        lookups=(asked.lookup,),
    )


def group_count(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The number of rows for each word of a text column."""
    made = tables.child
    column = rng.choice([*made.spellings])
    return SqlQuestion(
        phrasings=(f"how many {made.table} are there for each {column}", f"count the {made.table} by {column}"),
        sql=f"select {column}, count(*) from {made.table} group by {column}",
        wrong=(f"select {column} from {made.table}", f"select count(*) from {made.table}"),
        equivalent=(f"select count(id), {column} from {made.table} group by 2",),
    )


def group_having(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The words of a text column with more rows than a bound."""
    made = tables.child
    column, bound = rng.choice([*made.spellings]), rng.choice((1, 2, 3))
    start = f"select {column} from {made.table} group by {column}"
    return SqlQuestion(
        phrasings=(
            f"which {column} have more than {bound} {made.table}",
            f"list each {column} of over {bound} {made.table}",
        ),
        sql=f"{start} having count(*) > {bound}",
        wrong=(start, f"{start} having count(*) > {bound + 1}", f"{start} having count(*) > {bound - 1}"),
    )


def group_most(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The parent with the most children."""
    child, parent = _both(tables)
    del rng
    start = f"select {parent.table}.name from {_join(tables)} group by {parent.table}.id order by count(*)"
    return SqlQuestion(
        phrasings=(
            f"which {child.link} has the most {child.table}",
            f"name the {child.link} of the greatest number of {child.table}",
        ),
        sql=f"{start} desc limit 1",
        wrong=(f"{start} limit 1", f"{start} desc", f"select name from {parent.table} limit 1"),
        equivalent=(f"{start} desc, {parent.table}.id desc limit 1", f"{start} desc, {parent.table}.id limit 1"),
    )


def group_average(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """The average of a child's number for each word of a text column of the parent."""
    child, parent = _both(tables)
    column, number = rng.choice([*parent.spellings]), rng.choice(child.numbers)
    name, value = f"{parent.table}.{column}", f"{child.table}.{number}"
    return SqlQuestion(
        phrasings=(
            f"what average {number} have {child.table} for each {column} of the {child.link}",
            f"give the average {number} of {child.table} by {column} of the {child.link}",
        ),
        sql=f"select {name}, avg({value}) from {_join(tables)} group by {name}",
        wrong=(
            f"select {name}, sum({value}) from {_join(tables)} group by {name}",
            f"select {name}, avg({value}) from {_join(tables)}",
        ),
    )


def nested_average(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names with a number above the average."""
    made = tables.child
    column = rng.choice(made.numbers)
    average = f"(select avg({column}) from {made.table})"
    select = f"select name from {made.table}"
    return SqlQuestion(
        phrasings=(
            f"which {made.table} have {column} over the average",
            f"list the {made.table} with more {column} than average",
        ),
        sql=f"{select} where {column} > {average}",
        wrong=(select, f"{select} where {column} < {average}"),
    )


def nested_missing(rng: random.Random, tables: GeneratedTables) -> SqlQuestion:
    """Names of parents without a child that has a word in a text column."""
    child, parent = _both(tables)
    asked = category_condition(rng, child)
    select = f"select name from {parent.table}"
    inner = f"select {child.link} from {child.table} where {asked.sql}"
    return SqlQuestion(
        phrasings=(
            f"which {parent.table} have no {child.table} with {asked.words}",
            f"list the {parent.table} that are {child.link} of no {child.table} with {asked.words}",
        ),
        sql=f"{select} where id not in ({inner})",
        wrong=(
            select,
            f"{select} where id in ({inner})",
            f"{select} where id not in (select {child.link} from {child.table})",
        ),
        lookups=(asked.lookup,),
    )


def _both(tables: GeneratedTables) -> tuple[GeneratedTable, GeneratedTable]:
    if tables.parent is None:
        raise ValueError("got a database of one table; need tables=2 for questions about a table and its parent")
    return tables.child, tables.parent


def _join(tables: GeneratedTables) -> str:
    child, parent = _both(tables)
    return f"{child.table} join {parent.table} on {child.table}.{child.link} = {parent.table}.id"
