"""Syntax trees of queries by sqlglot: components, sub-queries as sub-goals, and similarity."""

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bough.version import install
from bough.worlds.sql.schema import Schema

NODES = 400
"""Maximum number of nodes of a syntax tree. A larger one has no components, and no similarity to another."""

NODE_SHARE = 0.7
"""Weight of shared nodes in `similarity`; the rest is for the distance of the trees."""

COMPARED = frozenset({"table", "condition", "having", "column", "group", "order"})
"""The kinds of components that `is_part` compares."""

Sources = Mapping[str, str]
"""The tables of a query by the name under which its columns are found."""


@lru_cache(maxsize=1)
def sqlglot() -> Any:
    """The package sqlglot.

    Raises:
        ImportError: when it is not installed.
    """
    try:
        return importlib.import_module("sqlglot")
    except ImportError as error:
        raise ImportError(f"Sql: got no package sqlglot; need it for syntax trees: {install('sql')}") from error


@lru_cache(maxsize=4096)
def components(sql: str, schema: Schema) -> frozenset[str]:
    """The parts of a query, in a form that does not depend on aliases, letter case and the order of conditions.

    A part is a table, a condition (also of a join), a column of the result, a column of GROUP BY, a key of ORDER BY, or
    a limit. The parts of nested queries are included.

    Returns:
        The parts; empty for text that is no query, or too large.

    Raises:
        ImportError: when sqlglot is not installed.
    """
    tree = _read(sql, schema)
    if tree is None:
        return frozenset()
    exp = sqlglot().exp
    return frozenset(part for select in tree.find_all(exp.Select) for part in _parts(select))


def component_recall(queries: Sequence[str], gold: str, schema: Schema) -> float:
    """The recall of components: the fraction of the gold query's that at least one query has, in [0, 1].

    Raises:
        ImportError: when sqlglot is not installed.
    """
    wanted = components(gold, schema)
    found = frozenset[str]().union(*(components(each, schema) for each in queries))
    return len(wanted & found) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=4096)
def similarity(sql: str, gold: str, schema: Schema) -> float:
    """Similarity of two syntax trees in 0 to 1, as LearNAT defines it (arXiv 2504.02327); 1 for equal trees.

    It is 0.7 s + 0.3 (1 - d). s is the fraction of the gold tree's subtrees that the other tree has; d is the edit
    distance over the number of nodes of the larger tree, at most 1.

    Raises:
        ImportError: when sqlglot is not installed.
    """
    one, two = _read(sql, schema), _read(gold, schema)
    if one is None or two is None:
        return 0.0
    mine, wanted = (Counter(each.sql() for each in tree.walk()) for tree in (one, two))
    share = (mine & wanted).total() / wanted.total()
    edits = len(sqlglot().diff(one, two, delta_only=True))
    distance = min(1.0, edits / max(mine.total(), wanted.total()))
    return NODE_SHARE * share + (1 - NODE_SHARE) * (1 - distance)


@lru_cache(maxsize=4096)
def is_part(sql: str, gold: str, schema: Schema) -> bool:
    """Whether a query is made of parts of the gold query, as a step toward it is (LearNAT, arXiv 2504.02327).

    Its tables, conditions, columns and keys must be subtrees of the gold query's tree. `*`, DISTINCT and limits are not
    compared.

    Examples:
        With the gold query `select name from pets where age > 3`, `select distinct age from pets` is a part, and
        `select name from pets where age > 4` is none.

    Raises:
        ImportError: when sqlglot is not installed.
    """
    one, two = _read(sql, schema), _read(gold, schema)
    if one is None or two is None:
        return False
    exp = sqlglot().exp
    wanted = {each.sql() for each in two.walk()}
    parts = (part.partition(" ") for select in one.find_all(exp.Select) for part in _parts(select))
    return all(text in wanted for kind, _, text in parts if kind in COMPARED and text != "*")


@lru_cache(maxsize=4096)
def sub_queries(sql: str) -> tuple[str, ...]:
    """The sub-goals of a query, in order: each sub-query adds one clause. The last one is the query itself.

    Nested queries that need no outer row come first. A query grows from its tables, condition by condition, to its
    groups, their conditions, its columns, and its order.

    Examples:
        >>> sub_queries("select name from pets where age > 3 order by age")
        ('SELECT * FROM pets', 'SELECT * FROM pets WHERE age > 3', 'SELECT name FROM pets WHERE age > 3',
         'select name from pets where age > 3 order by age')

    Returns:
        The queries without duplicates; only the query itself where sqlglot cannot read it.

    Raises:
        ImportError: when sqlglot is not installed.
    """
    package = sqlglot()
    tree = _parse(sql)
    if tree is None:
        return (sql,)
    steps: dict[str, None] = {}
    for select in reversed([*tree.find_all(package.exp.Select)]):
        steps |= dict.fromkeys(each.sql(dialect="sqlite") for each in _growth(select))
    whole = tree.sql(dialect="sqlite")
    return (*(each for each in steps if each != whole), sql)


def _parse(sql: str) -> Any:
    """The tree of one query; None for other text."""
    package = sqlglot()
    try:
        trees = package.parse(sql, dialect="sqlite")
    except (package.errors.SqlglotError, RecursionError, ValueError):
        return None
    if len(trees) != 1 or not isinstance(trees[0], package.exp.Query):
        return None
    try:
        size = sum(1 for _ in trees[0].walk())
    except RecursionError:
        return None
    return trees[0] if size <= NODES else None


def _read(sql: str, schema: Schema) -> Any:
    """The tree of a query with full names in lower case and without aliases; None for other text."""
    tree = _parse(sql)
    if tree is None:
        return None
    exp = sqlglot().exp
    for name in tree.find_all(exp.Identifier):
        name.set("this", str(name.this).lower())
        name.set("quoted", False)
    owners: dict[str, list[str]] = {}
    for table in schema.tables:
        for column in table.columns:
            owners.setdefault(column.name.lower(), []).append(table.name.lower())
    for column in [*tree.find_all(exp.Column)]:
        _qualify(column, owners)
    for each in [*tree.find_all(exp.Table)]:
        each.set("alias", None)
    for each in [*tree.find_all(exp.EQ)]:
        left, right = sorted((each.left, each.right), key=lambda side: side.sql())
        each.set("this", left)
        each.set("expression", right)
    for each in [*tree.find_all(exp.Alias)]:
        each.replace(each.this)
    return tree


def _qualify(column: Any, owners: Mapping[str, Sequence[str]]) -> None:
    """Gives a column the name of its table, where that is certain."""
    exp = sqlglot().exp
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = _sources(select)
        if column.table:
            table = sources.get(column.table)
        else:
            having = [each for each in {*sources.values()} if each in owners.get(column.name, ())]
            table = having[0] if len(having) == 1 else None
            if table is None and len(sources) == 1 and not owners.get(column.name):
                (table,) = sources.values()
        if table is not None:
            column.set("table", exp.to_identifier(table))
            return
        select = select.find_ancestor(exp.Select)


def _sources(select: Any) -> Sources:
    """The tables in the FROM of a query, by alias."""
    exp = sqlglot().exp
    places: list[Any] = [_from(select), *_listed(select, "joins")]
    tables: list[Any] = [place.this for place in places if place is not None and isinstance(place.this, exp.Table)]
    return {table.alias_or_name: table.name for table in tables}


def _from(select: Any) -> Any:
    """The FROM of a query; its key depends on the version of sqlglot."""
    return select.args.get("from_") or select.args.get("from")


def _listed(node: Any, key: str) -> list[Any]:
    return node.args.get(key) or []


def _parts(select: Any) -> Iterator[str]:
    """The components of one SELECT, without those of nested ones."""
    exp = sqlglot().exp
    yield from (f"table {table}" for table in _sources(select).values())
    for join in _listed(select, "joins"):
        yield from (f"condition {each}" for each in _conditions(join.args.get("on")))
    for name, key in (("condition", "where"), ("having", "having")):
        clause = select.args.get(key)
        yield from (f"{name} {each}" for each in _conditions(None if clause is None else clause.this))
    yield from (f"column {each.sql()}" for each in select.expressions)
    if group := select.args.get("group"):
        yield from (f"group {each.sql()}" for each in group.expressions)
    if order := select.args.get("order"):
        yield from (f"order {each.sql()}" for each in order.expressions)
    if limit := select.args.get("limit"):
        yield limit.sql().strip().lower()
    if select.args.get("distinct"):
        yield "distinct"
    if isinstance(select.parent, exp.SetOperation):
        yield f"part of {select.parent.key}"


def _conditions(condition: Any) -> Iterator[str]:
    """The conditions that AND joins; both sides of an equality in order."""
    exp = sqlglot().exp
    if condition is None:
        return
    for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        whole = each.unnest()
        if isinstance(whole, exp.And):
            yield from _conditions(whole)
        else:
            yield whole.sql()


def _growth(select: Any) -> Iterator[Any]:
    """The sub-queries of one SELECT; nothing for one that reads a row of an outer query."""
    exp = sqlglot().exp
    if not _from(select) or _reads_outside(select):
        return
    plain = select.copy()
    root = select.root()
    named = {each.alias for each in root.find_all(exp.CTE)}
    for key in ("with", "with_"):
        if root.args.get(key) and named & {each.name for each in select.find_all(exp.Table)}:
            plain.set(key, root.args[key].copy())
    base = plain.copy()
    for key in ("where", "group", "having", "order", "limit", "offset", "distinct", "windows"):
        base.set(key, None)
    base.set("expressions", [exp.Star()])
    yield base.copy()
    where = plain.args.get("where")
    if where is not None:
        together = None
        for each in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            together = each.copy() if together is None else exp.and_(together, each.copy())
            grown = base.copy()
            grown.set("where", exp.Where(this=together.copy()))
            yield grown
    for left in (("having", "order", "limit", "offset"), ("order", "limit", "offset"), ("limit", "offset"), ()):
        grown = plain.copy()
        for key in left:
            grown.set(key, None)
        yield grown


def _reads_outside(select: Any) -> bool:
    """Whether a column of a nested query names a table that is outside of it."""
    exp = sqlglot().exp
    inside = {name for each in select.find_all(exp.Select) for name in _sources(each)}
    aliases = {each.alias for each in select.find_all(exp.Subquery, exp.CTE)}
    return any(column.table and column.table not in inside | aliases for column in select.find_all(exp.Column))
