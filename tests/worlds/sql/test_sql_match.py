"""Results of queries are compared as execution accuracy does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.env.sqlite.query import QueryError, QueryResult, Row
from bough.worlds.sql.match import Match
from bough.worlds.sql.questions import normalise_sql, orders_rows

BIRD = Match(rows="set", order="never", permute_columns=False)
VALUES = st.none() | st.integers(-3, 3) | st.sampled_from(["a", "b", ""]) | st.sampled_from([0.5, 1.0, 1e9, b"a"])


def of(*rows: Row) -> QueryResult:
    return QueryResult(columns=tuple("abcdefgh"[: len(rows[0]) if rows else 1]), rows=rows)


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    width = draw(st.integers(1, 4))
    return draw(st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=6))


@given(rows=tables(), seed=st.integers(0, 1000))
def test_the_order_of_rows_and_columns_does_not_matter(rows: list[Row], seed: int) -> None:
    rng = random.Random(seed)
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    other = [tuple(row[column] for column in order) for row in rng.sample(rows, len(rows))]
    assert Match().equal(of(*rows), of(*other), ordered=False)
    assert Match().overlap(of(*rows), of(*other)) == 1.0
    in_order = [tuple(row[column] for column in order) for row in rows]
    assert Match().equal(of(*rows), of(*in_order), ordered=True)


@given(rows=tables(), at=st.integers(0, 100), column=st.integers(0, 100))
def test_another_value_is_another_result(rows: list[Row], at: int, column: int) -> None:
    at, column = at % len(rows), column % len(rows[0])
    row = (*rows[at][:column], "new", *rows[at][column + 1 :])
    other = [*rows[:at], row, *rows[at + 1 :]]
    for match in (Match(), BIRD, Match(permute_columns=False)):
        assert not match.equal(of(*rows), of(*other), ordered=False)


def test_columns_are_permuted_together() -> None:
    gold = of((1, 2), (2, 1))
    assert not Match().equal(gold, of((1, 1), (2, 2)), ordered=False)
    many = of(*[tuple(int(row == column) for column in range(8)) for row in range(8)])
    assert Match().equal(many, of(*reversed(many.rows)), ordered=True), "the same with columns reversed"
    assert not Match(permute_columns=False).equal(of((1, 2)), of((2, 1)), ordered=False)
    same = of(*[(0,) * 8] * 50)
    assert Match().equal(same, same, ordered=False)
    assert not Match().equal(same, of(*[(0,) * 7 + (1,)] * 50), ordered=False)


def test_order_matters_where_the_gold_query_orders() -> None:
    assert not Match().equal(of((1,), (2,)), of((2,), (1,)), ordered=True)
    assert Match().equal(of((1,), (2,)), of((2,), (1,)), ordered=False)
    assert BIRD.equal(of((1,), (2,)), of((2,), (1,)), ordered=True)


def test_multisets_and_sets() -> None:
    assert not Match().equal(of((1,), (1,)), of((1,)), ordered=False)
    assert not Match().equal(of((1,), (1,), (2,)), of((1,), (2,), (2,)), ordered=False)
    assert BIRD.equal(of((1,), (1,), (2,)), of((1,), (2,), (2,)), ordered=False)


def test_numbers_have_a_tolerance_and_texts_are_no_numbers() -> None:
    third = 1 / 3
    assert Match().equal(of((third, "a")), of((third * (1 + 1e-8), "a")), ordered=False)
    assert Match().equal(of((1,)), of((1.0,)), ordered=False)
    assert not Match().equal(of((third,)), of((0.3334,)), ordered=False)
    assert not Match(tolerance=0).equal(of((1.0,)), of((1.0 + 1e-8,)), ordered=False)
    assert not Match().equal(of((1,)), of(("1",)), ordered=False)
    assert not Match().equal(of((None,)), of((0,)), ordered=False)
    assert not Match().equal(of(("a",)), of((b"a",)), ordered=False)
    assert Match().equal(of((float("inf"),)), of((float("inf"),)), ordered=False)
    assert Match().equal(of((2**70,), (1,)), of((1,), (2**70,)), ordered=False)


@pytest.mark.parametrize("match", [Match(), Match(tolerance=0), BIRD], ids=["spider", "exact", "bird"])
def test_integers_are_compared_exactly(match: Match) -> None:
    for gold, other in (
        (20240001, 20240002),
        (2_000_000, 2_000_001),
        (999, 999.0005),
        (999.0005, 999),
        (2**62, 2**62 + 1),
        (2**53 + 1, float(2**53)),
        (20240001.0, 20240002.0),
        (20240001, 20240002.0),
        (0, 1e-9),
        (-(2**63), -(2**63) + 1),
    ):
        assert not match.equal(of((gold,)), of((other,)), ordered=False), (gold, other)
        assert not match.equal(of((1, gold), (2, 0)), of((1, other), (2, 0)), ordered=False), (gold, other)
        assert match.overlap(of((gold,)), of((other,))) == 0
        assert match.equal(of((gold,), (other,)), of((other,), (gold,)), ordered=False), "rows that differ a little"
        assert not match.equal(of((gold,), (other,)), of((gold,)), ordered=False), "no row of a set is lost"
    for value in (0, 3, 20240001, 2**53, 2**60):
        assert match.equal(of((value, "a"), (5, "b")), of((5.0, "b"), (float(value), "a")), ordered=False), value
        assert match.overlap(of((value,)), of((float(value),))) == 1


def test_columns_of_large_integers_are_permuted() -> None:
    ids = of((10**12 + 1, "a", 10**12 + 2), (10**12 + 3, "b", 10**12 + 4))
    assert Match().equal(ids, of(*[(row[2], row[0], row[1]) for row in reversed(ids.rows)]), ordered=False)
    assert not Match().equal(ids, of(*[(row[2] + 1, row[0], row[1]) for row in ids.rows]), ordered=False)  # type: ignore[operator]


def test_errors_and_results_that_were_cut_equal_nothing() -> None:
    good, bad = of((1,)), QueryResult(error=QueryError.INVALID)
    assert not Match().equal(good, bad, ordered=False)
    assert not Match().equal(bad, bad, ordered=False)
    cut = QueryResult(columns=("a",), rows=((1,),), more=True)
    assert not Match().equal(good, cut, ordered=False)
    assert not Match().equal(of((1,)), of((1, 1)), ordered=False)
    assert Match().overlap(good, bad) == 0.0
    assert Match().overlap(of((1,), (2,)), of((2,), (3,))) == pytest.approx(0.5)
    assert Match().overlap(of(), of()) == 1.0
    with pytest.raises(ValueError, match="tolerance"):
        Match(tolerance=-1)


def test_the_order_by_of_the_query_itself_counts() -> None:
    assert orders_rows("select a from t ORDER  BY a")
    assert orders_rows("select a from (select b from t order by c) order by a")
    assert not orders_rows("select a from (select b from t order by c limit (1))")
    assert not orders_rows("select 'order by', \"order by\", `order by` from t")
    assert not orders_rows("select rank() over (order by a) from t")


def test_tidy_keeps_what_is_quoted() -> None:
    assert normalise_sql("select 1 --\n+ 1") == normalise_sql("select 1 /* -- */ + 1;--x") == "select 1 + 1"
    assert normalise_sql("select 1 -- + 1") == "select 1"
    assert normalise_sql("select '--' , [A /* b], \"C--\"") == "select '--' , [A /* b], \"C--\""
    assert normalise_sql("  SELECT a\n FROM  t where B = 'It''s  X';") == "select a from t where b = 'It''s  X'"
