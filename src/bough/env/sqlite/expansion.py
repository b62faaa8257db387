"""Bounds the size of a query after SQLite has replaced its common tables, views and sub-queries by their texts.

SQLite expands a statement before it executes it, and no limit of work holds there: a chain of 30 common tables, each
of which reads the one before it twice, would take hours.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_TABLES = 1000
"""Maximum number of tables and sub-queries after the expansion."""

MOST_COPIES = 200_000
"""Maximum number of copies of one column after the expansion, as the product of its uses along a chain."""

DEEPEST = 100
"""Number of blocks around a sub-query whose columns it may mean; SQLite parses fewer."""

TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\ufeff"
    r"|'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|`(?:[^`]|``)*`?|\[[^\]]*\]?"
    r"|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*|\d[\w.]*|\S",
    re.DOTALL,
)
SKIPPED = ("--", "/*", "\ufeff")
QUOTES = ("'", '"', "`", "[")
BEGINNINGS = ("select", "values", "with")
BEFORE_TABLE = ("from", "join", ",", "(", "in")
KEYWORDS = frozenset(
    [
        "all", "and", "as", "asc", "between", "by", "case", "collate", "cross", "desc", "distinct", "else", "end",
        "except", "exists", "from", "full", "glob", "group", "having", "in", "inner", "intersect", "is", "isnull",
        "join", "left", "like", "limit", "natural", "not", "notnull", "null", "offset", "on", "or", "order", "outer",
        "over", "partition", "recursive", "right", "select", "then", "union", "using", "values", "when", "where",
        "with",
    ]
)  # fmt: skip
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""SQLite ignores the case of these letters alone."""


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT of a statement: between its parentheses, or the whole statement.

    Attributes:
        outer: The block around it.
        defined: The common tables of its WITH clause, or the views of the database.
        inner: The sub-queries in it.
        tables: Names after FROM, JOIN and IN.
        uses: How often each name occurs in it and in the sub-queries in it, which may mean its columns.
        is_table: Whether it is a common table, which sees no columns of the block that defines it.
    """

    outer: "Block | None" = None
    defined: dict[str, "Block"] = field(default_factory=dict[str, "Block"])
    inner: list["Block"] = field(default_factory=list["Block"])
    tables: list[str] = field(default_factory=list[str])
    uses: Counter[str] = field(default_factory=Counter[str])
    is_table: bool = False
    pending: str = ""
    in_with: bool = False

    def find(self, name: str) -> "Block | None":
        """The common table or view that a name means in this block."""
        block: Block | None = self
        while block is not None:
            if name in block.defined:
                return block.defined[name]
            block = block.outer
        return None


def database_views(texts: Mapping[str, str]) -> Block:
    """The block around every query of a database: its views, from their names and CREATE VIEW statements."""
    views = Block()
    for name, text in texts.items():
        views.defined[name.translate(LOWER)] = read_block(text, views)
    return views


def too_large(sql: str, views: Block) -> str:
    """Returns why a query is too large after its expansion; "" for one that is not. Takes linear time."""
    try:
        tables, copies = _size(read_block(sql, views), {})
    except RecursionError:
        return "the query has too many common tables and sub-queries in each other"
    if tables > MOST_TABLES:
        return f"more than {MOST_TABLES:,} tables after the expansion of common tables and views"
    return f"more than {MOST_COPIES:,} copies of a column after the expansion" if copies > MOST_COPIES else ""


def read_block(sql: str, outer: Block) -> Block:
    """Returns the blocks of a statement. Any text is read; what is no SQL makes no block."""
    tokens = [_name(found) for found in TOKEN.findall(sql) if not found.startswith(SKIPPED)]
    root = Block(outer=outer, is_table=True)
    stack = [root]
    own = [True]  # whether the last open parenthesis began a block
    for place, (token, word) in enumerate(tokens):
        block = stack[-1]
        before = tokens[place - 1][0] if place else ""
        after = tokens[place + 1][0] if place + 1 < len(tokens) else ""
        if token == "(" and not word:
            own.append(after in BEGINNINGS)
            if own[-1]:
                stack.append(_open(block, before))
        elif token == ")" and not word:
            if len(own) > 1 and own.pop():
                stack.pop()
        elif word:
            if own[-1] and block.in_with and before in ("with", "recursive", ","):
                block.pending = token
            _count(block, token, (tokens[place - 3][0] if before == "." and place > 2 else before, before), after)
    return root


def _name(token: str) -> tuple[str, bool]:
    """A token in lower case without quotation marks, and whether it may be a name."""
    if token.startswith(QUOTES):
        close = "]" if token[0] == "[" else token[0]
        return token[1:].removesuffix(close).replace(close * 2, close).translate(LOWER), True
    return token.translate(LOWER), token[0].isalpha() or token[0] == "_" or token[0] >= "\x80"


def _open(block: Block, before: str) -> Block:
    """A new block inside another: a common table after AS, otherwise a sub-query."""
    opened = Block(outer=block)
    if block.in_with and block.pending and before in ("as", "materialized"):
        opened.is_table = True
        block.defined[block.pending] = opened
        block.pending = ""
    else:
        block.inner.append(opened)
    return opened


def _count(block: Block, token: str, before: tuple[str, str], after: str) -> None:
    """Counts a word in its block."""
    if token in ("with", "select", "values"):
        block.in_with = token == "with"
    if before[0] in BEFORE_TABLE and after not in (".", "("):
        block.tables.append(token)
    alias = before[1] in ("as", ")") or (before[1][:1].isalnum() and before[1] not in KEYWORDS)
    if token not in KEYWORDS and after not in (".", "(") and not alias:
        reader: Block | None = block
        for _ in range(DEEPEST):
            if reader is None:
                break
            reader.uses[token] += 1
            reader = reader.outer.outer if reader.is_table and reader.outer is not None else reader.outer


def _size(block: Block, known: dict[Block, tuple[int, int]]) -> tuple[int, int]:
    """The number of tables of a block after expansion, and the maximum number of copies of a column."""
    if block in known:
        return known[block]
    known[block] = (1, 1)  # a recursive table reads itself once
    tables, copies = 1, 1
    inner = [*block.inner, *(found for name in block.tables if (found := block.find(name)) is not None)]
    for each in inner:
        more, most = _size(each, known)
        tables, copies = tables + more, max(copies, most)
    known[block] = (tables, copies * max(block.uses.values(), default=1))
    return known[block]
