"""Compares the results of two queries, as execution accuracy does."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal, TypeAlias

from bough.env.sqlite.query import QueryResult, Row, Value
from bough.piece import AtLeast, piece

Rows: TypeAlias = Sequence[Row]

DIGITS = 9
"""Significant digits by which numbers with a fraction are sorted and grouped."""

ORDERS = 64
"""Maximum number of orders of columns that are kept. Only results with many equal columns have more."""


@piece
class Match:
    """The comparison of results. The defaults follow test-suite evaluation of Spider (arXiv 2010.02840).

    Names of columns do not matter. An integer equals a number of the same value only, and so do two whole numbers;
    other numbers have a tolerance. `Match(rows="set", order="never", permute_columns=False)` is BIRD's comparison
    (arXiv 2305.03111).

    Attributes:
        rows: "multiset" counts how often a row occurs; "set" does not.
        order: "gold" compares the order of rows where the gold query has an ORDER BY; "never" compares none.
        permute_columns: Whether the columns may be in another order.
        tolerance: Relative and absolute difference of equal numbers that are no integers.

    Raises:
        ValueError: when the tolerance is negative.
    """

    rows: Literal["multiset", "set"] = "multiset"
    order: Literal["gold", "never"] = "gold"
    permute_columns: bool = True
    tolerance: Annotated[float, AtLeast(0)] = 1e-6

    def equal(self, gold: QueryResult, other: QueryResult, *, ordered: bool) -> bool:
        """Whether two results are the same.

        Args:
            gold: The result of the gold query.
            other: Another result. A result with an error or with rows left out equals none.
            ordered: Whether the gold query orders its rows.
        """
        if gold.error or other.error or gold.more or other.more:
            return False
        if len(gold.columns) != len(other.columns):
            return False
        if self.rows == "multiset" and len(gold.rows) != len(other.rows):
            return False
        in_order = ordered and self.order == "gold"
        arrangements = self._arrangements(gold.rows, other.rows, in_order)
        return any(self._same(gold.rows, rows, in_order) for rows in arrangements)

    def overlap(self, gold: QueryResult, other: QueryResult) -> float:
        """F1 of the rows of two results as multisets, in 0 to 1; the order of rows and columns does not matter."""
        if gold.error or other.error or len(gold.columns) != len(other.columns):
            return 0.0
        ours = Counter(_bag(row) if self.permute_columns else _rounded(row) for row in gold.rows)
        theirs = Counter(_bag(row) if self.permute_columns else _rounded(row) for row in other.rows)
        total = ours.total() + theirs.total()
        return 2 * (ours & theirs).total() / total if total else 1.0

    def _arrangements(self, gold: Rows, other: Rows, in_order: bool) -> Iterator[Rows]:
        """The other rows, with their columns in each order under which they may be the gold rows."""
        yield other
        width = len(gold[0]) if gold else 0
        if not self.permute_columns or width < 2 or not other:
            return
        orders: list[tuple[int, ...]] = [()]
        # Column by column; an order stays as long as its columns have the rows of the first gold columns.
        for done in range(1, width + 1):
            want = self._summary([row[:done] for row in gold], in_order)
            taken = ((*order, each) for order in orders for each in range(width) if each not in order)
            kept = (each for each in taken if self._summary(_arranged(other, each), in_order) == want)
            orders = list(islice(kept, ORDERS))
        for order in orders:
            yield _arranged(other, order)

    def _summary(self, rows: Rows, in_order: bool) -> object:
        found = [_rounded(row) for row in rows]
        if in_order:
            return found
        return frozenset(found) if self.rows == "set" else Counter(found)

    def _same(self, gold: Rows, other: Rows, in_order: bool) -> bool:
        first, second = ([*rows] for rows in (gold, other))
        if self.rows == "set":
            first, second = ([*{_rounded(row): row for row in rows}.values()] for rows in (first, second))
        if len(first) != len(second):
            return False
        if not in_order:
            first, second = (sorted(rows, key=_sortable) for rows in (first, second))
        return all(
            self._equal_values(a, b)
            for one, two in zip(first, second, strict=True)
            for a, b in zip(one, two, strict=True)
        )

    def _equal_values(self, one: Value, two: Value) -> bool:
        if not isinstance(one, float | int) or not isinstance(two, float | int):
            return type(one) is type(two) and one == two
        if isinstance(one, int) or isinstance(two, int) or (one.is_integer() and two.is_integer()):
            return one == two
        return one == two or math.isclose(one, two, rel_tol=self.tolerance, abs_tol=self.tolerance)


def _arranged(rows: Rows, order: Sequence[int]) -> Rows:
    return [tuple(row[each] for each in order) for row in rows]


def _rounded(row: Row) -> Row:
    """The row with its numbers rounded by `_number`, for hashes."""
    return tuple(_number(value) if isinstance(value, float | int) else value for value in row)


def _number(value: float) -> float:
    """A whole number as it is, another one with `DIGITS` significant digits."""
    return value if isinstance(value, int) or value.is_integer() else float(f"{value:.{DIGITS}g}")


def _sortable(row: Row) -> tuple[tuple[int, float, str], ...]:
    return tuple(_ranked(value) for value in row)


def _ranked(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, float | int):
        return (1, _number(value), "")
    return (2, 0.0, value) if isinstance(value, str) else (3, 0.0, value.hex())


def _bag(row: Row) -> Row:
    """The values of a row in an order that does not depend on that of the columns."""
    return tuple(sorted(_rounded(row), key=_ranked))
