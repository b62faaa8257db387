"""Queries of an untrusted author: reads are allowed, everything else is a typed error within the limits."""

import sqlite3
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env.sqlite.expansion import Block, too_large
from bough.env.sqlite.query import QueryError, QueryLimits
from bough.env.sqlite.read_only import ReadOnlyDatabase

LIMITS = QueryLimits(instructions=300_000, seconds=0.5, rows=100, value_bytes=20_000, sql_bytes=5000)
BIG = "printf('%.*c', 19000, 'x')"
COUNT = "with recursive r(x) as (select 1 union all select x + 1 from r)"
BLOBS = f"with recursive r(x, n) as (select {BIG}, 1 union all select {BIG}, n + 1 from r)"


def content() -> bytes:
    database = sqlite3.connect(":memory:")
    database.executescript("create table t (a integer, b text); create table u (c)")
    database.executemany("insert into t values (?, ?)", [(number, str(number)) for number in range(100)])
    database.commit()
    return database.serialize()


CONTENT = content()


@pytest.fixture(scope="module")
def database() -> ReadOnlyDatabase:
    return ReadOnlyDatabase(CONTENT)


@pytest.mark.parametrize(
    "sql",
    [
        "attach 'FILE' as other",
        "vacuum into 'FILE'",
        "pragma table_info(t)",
        "pragma writable_schema = 1",
        "pragma temp_store_directory = '/'",
        "select * from pragma_table_info('t')",
        "insert into t values (1, 2)",
        "insert into t values (1, 2) returning a",
        "update t set a = 0",
        "delete from t",
        "with x as (select 1) delete from t",
        "drop table t",
        "create table v (a)",
        "create temp table v (a)",
        "create view v as select 1",
        "alter table t add column z",
        "analyze",
        "begin",
        "savepoint s",
        "detach main",
        "create virtual table f using fts5(x)",
        "select load_extension('/lib/x.so')",
        "select fts3_tokenizer('simple')",
        "select zeroblob(1000000000)",
        "select hex(randomblob(1000000000))",
        "select random()",
        "select sqlite_version()",
        "select count(*) from dbstat",
    ],
)
def test_what_is_not_reading_is_denied_and_changes_nothing(
    sql: str, database: ReadOnlyDatabase, tmp_path: Path
) -> None:
    result = database.run(sql.replace("FILE", str(tmp_path / "file.db")), LIMITS)
    assert result.error is QueryError.DENIED
    assert result.rows == ()
    assert "allowed" in result.message
    assert [*tmp_path.iterdir()] == []
    assert database.run("select count(*), sum(a) from t").rows == ((100, 4950),)
    assert database.run("select name from sqlite_master").rows == (("t",), ("u",))


@pytest.mark.parametrize(
    "sql",
    [
        f"{COUNT} select count(*) from r",
        f"{COUNT} select x from r order by -x",
        "select count(*) from t a, t b, t c, t d, t e",
        "select group_concat(a.b) from t a, t b, t c, t d",
        f"select count(*) from {', '.join(f't t{number}' for number in range(60))}",
        f"{BLOBS} select count(*) from (select * from r order by x, n)",
        f"{BLOBS} select count(distinct x || n) from r",
        f"{BLOBS} select group_concat(x) from r",
        f"{BLOBS} select json_group_array(x) from r",
        f"select sum(instr(s.x, substr(s.x, 1, 9000) || 'b' || a.a)) from (select {BIG} as x) s, t a, t b, t c",
        f"select sum(length(replace(s.x, substr(s.x, 1, 9000) || a.a, ''))) from (select {BIG} as x) s, t a, t b, t c",
        f"select count(*) from t a, t b, t c, (select {BIG} as x) s where s.x || a.a || b.a || c.a like '%x%x%x%xb'",
    ],
)
def test_work_without_an_end_is_stopped(sql: str, database: ReadOnlyDatabase) -> None:
    begun = time.process_time()
    result = database.run(sql, LIMITS)
    assert result.error in (QueryError.TOO_MUCH_WORK, QueryError.TOO_LONG)
    assert time.process_time() - begun < LIMITS.seconds + 0.5
    assert database.run("select 1").rows == ((1,),)


def test_one_instruction_without_an_end_is_stopped() -> None:
    database, wide = ReadOnlyDatabase(CONTENT), "printf('%.*c', 2147483647, 'x')"
    begun = time.monotonic()
    result = database.run("select " + " || ".join([wide] * 5), LIMITS)
    assert time.monotonic() - begun < 10, "each takes 14 seconds"
    assert (result.error, result.message) == (QueryError.TOO_MUCH_WORK, "more than 0.5 seconds")
    assert database.run("select count(*) from t").rows == ((100,),), "another process goes on"


def chain(body: str, levels: int = 30) -> str:
    """Common tables, each of which reads the one before: its name replaces SELF."""
    tables = (f", a{level + 1} as ({body.replace('SELF', f'a{level}')})" for level in range(levels))
    return f"with a0 as (select 1 x){''.join(tables)} select count(*) from a{levels}"


@pytest.mark.parametrize(
    "sql",
    [
        chain("select 1 x from SELF p, SELF q"),
        chain("select 1 x from SELF p join main.SELF q, SELF r"),
        chain("select x from SELF union all select x from SELF"),
        chain("select 1 x from 'SELF' p, [SELF] q"),
        chain('select 1 x from/**/"SELF" p,--\n`SELF` q'),
        chain("SELECT 1 x FROM \ufeffSELF p, \ufeffSELF q"),
        chain("select 1 x where 1 in SELF or 2 in SELF"),
        chain("select (select x from SELF) + (select x from SELF) x"),
        chain("select x + x x from SELF"),
        chain("select (select x + x) x from SELF"),
        chain("select (with c as (select x + x y) select y from c) x from SELF"),
        "select * from " + "(select x + x + x + x + x x from " * 12 + "(select 1 x)" + ")" * 12,
        "with a as (" * 14 + "select 1 x" + ") select 1 x from a p, a q, a r" * 14,
    ],
)
def test_a_query_that_grows_when_it_is_expanded_is_refused(sql: str, database: ReadOnlyDatabase) -> None:
    begun = time.process_time()
    assert database.run(sql).error is QueryError.TOO_MUCH_WORK
    assert time.process_time() - begun < 2


def test_views_are_expanded_too() -> None:
    source = sqlite3.connect(":memory:")
    source.execute("create view v0 as select 1 x")
    for level in range(30):
        source.execute(f"create view v{level + 1} as select 1 x from v{level} p, v{level} q")
    database = ReadOnlyDatabase(source.serialize())
    assert database.run("select count(*) from v5").rows == ((1,),)
    for sql in ("select * from v30", "select * from main.V30", "with a as (select * from v30) select * from a"):
        assert database.run(sql).error is QueryError.TOO_MUCH_WORK
    assert database.run("with v30 as (select 1) select * from v30").rows == ((1,),)


def test_queries_of_common_length_are_not_refused(database: ReadOnlyDatabase) -> None:
    assert database.run(chain("select max(x) x from SELF", 40)).rows == ((1,),)
    assert database.run(
        "with recursive r(x) as (select 1 union all select x + 1 from r where x < 9) select max(x) from r"
    ).rows == ((9,),)
    assert database.run(
        "with a as (select a from t), b as (select a from a where a > 3) select count(*) from b, a"
    ).rows
    columns = ", ".join(f"a + {number} as c{number}" for number in range(400))
    assert len(database.run(f"select {columns} from (select a from t)").columns) == 400


@given(
    st.lists(st.sampled_from(["(", ")", "'", '"', "[", "`", "--", "/*", "\n", " ", ",", ".", "with", "select", "a"]))
)
def test_the_expansion_of_any_text_is_bounded(parts: list[str]) -> None:
    assert too_large(" ".join(parts), Block()) == ""


@pytest.mark.parametrize("part", ["(", "'", "/*", "--", "a,", "(select ", "with a as (", ")", "[", "''"])
def test_the_expansion_takes_linear_time(part: str) -> None:
    begun = time.process_time()
    too_large(part * (100_000 // len(part)), Block())
    assert time.process_time() - begun < 1


def test_memory_is_limited(database: ReadOnlyDatabase) -> None:
    limits = QueryLimits(instructions=100_000_000, seconds=30, memory_bytes=10_000_000)
    result = database.run(f"{BLOBS} select count(*) from (select * from r order by x, n)", limits)
    assert result.error is QueryError.TOO_MUCH_WORK
    # Where Python hides the memory of its SQLite, an allocation fails.
    assert result.message in ("more than 10,000,000 bytes of memory", "too much memory")
    limits = replace(limits, rows=400)
    assert len(database.run(f"{BLOBS} select x from r", limits).rows) == limits.rows, "rows are not kept by SQLite"


def test_the_size_of_the_rows_is_limited(database: ReadOnlyDatabase) -> None:
    wide = ", ".join(["x"] * 1900)
    count = "with recursive c(i) as (select 1 union all select i + 1 from c limit 1000)"
    sql = f"{count}, t(x) as (select cast(printf('%9000d', 1) as blob)) select {wide} from c, t"
    tracemalloc.start()
    result = database.run(sql, QueryLimits(memory_bytes=50_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (result.error, result.message) == (QueryError.TOO_MUCH_WORK, "more than 50,000,000 bytes of rows")
    assert peak < 120_000_000


def test_the_limit_of_memory_counts_one_query_alone() -> None:
    few = BLOBS.replace("from r)", "from r limit 300)")
    limits = QueryLimits(instructions=100_000_000, seconds=30, memory_bytes=9_000_000)
    databases = [ReadOnlyDatabase(CONTENT) for _ in range(4)]

    def sort(database: ReadOnlyDatabase) -> list[QueryError]:
        sql = f"{few} select count(*) from (select * from r order by x, n)"
        return [database.run(sql, limits).error for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        assert {error for errors in pool.map(sort, databases) for error in errors} == {QueryError.NONE}


def test_the_limit_of_instructions_is_the_same_every_time() -> None:
    limits = QueryLimits(instructions=20_000, seconds=60)
    sizes: set[int] = set()
    for _ in range(3):
        database, most = ReadOnlyDatabase(CONTENT), 0
        for count in range(500, 3000, 100):
            if not database.run(f"{COUNT} select count(*) from (select x from r limit {count})", limits).error:
                most = count
        sizes.add(most)
    assert len(sizes) == 1
    assert 500 < sizes.pop() < 2900


def test_rows_and_bytes_are_limited(database: ReadOnlyDatabase) -> None:
    result = database.run("select a from t a, t b", QueryLimits(rows=7))
    assert (len(result.rows), result.more, result.error) == (0, False, QueryError.INVALID), "the column is ambiguous"
    result = database.run("select a.a from t a, t b", QueryLimits(rows=7))
    assert (len(result.rows), result.more) == (7, True)
    assert not database.run("select a from t", QueryLimits(rows=100)).more
    assert database.run("select " + BIG.replace("19000", "21000") + " || 'a'", LIMITS).rows in ((), ((None,),))
    assert database.run(f"select {BIG} || {BIG}", LIMITS).error is QueryError.TOO_LONG
    assert database.run(f"select '{'x' * 6000}'", LIMITS).error is QueryError.TOO_LONG


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "",
            " ",
            ";",
            "-- nothing",
            "select",
            "select 1; select 2",
            "select 1\0",
            "select '\ud800'",
            "selec 1",
            "\x00",
        ),
        *(
            "select * from nowhere",
            f"select {'(' * 2000}1{')' * 2000}",
            "select ?",
            " union all ".join(["select 1"] * 60),
        ),
    ],
)
def test_wrong_text_is_a_typed_error(sql: str, database: ReadOnlyDatabase) -> None:
    result = database.run(sql, LIMITS)
    assert result.error is QueryError.INVALID
    assert result.message
    result.message.encode()


@settings(max_examples=60)
@given(
    sql=st.text() | st.text().map(lambda text: f"select {text} from t") | st.text().map(lambda text: f"select '{text}'")
)
def test_any_text_gives_a_result(sql: str) -> None:
    result = ReadOnlyDatabase(CONTENT).run(sql, LIMITS)
    assert bool(result.error) == bool(result.message)


def test_the_present_is_fixed_and_time_zones_change_nothing(
    database: ReadOnlyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = (
        "select date('now'), date(), datetime('now', 'localtime'), current_timestamp, current_date, current_time, "
        "strftime('%Y', 'now', '-1 year'), strftime('%m', '2020-07-02'), date('2020-01-31', '+1 day'), julianday('now')"
    )
    expected = ("2025-01-01", "2025-01-01", "2025-01-01 12:00:00", "2025-01-01 12:00:00", "2025-01-01", "12:00:00")
    assert database.run(sql).rows == ((*expected, "2024", "07", "2020-02-01", 2460677.0),)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert ReadOnlyDatabase(CONTENT).run(sql).rows[0][:6] == expected
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_what_a_query_reads(database: ReadOnlyDatabase) -> None:
    assert database.run("select A from T where b = '1'").reads == {("t", "a"), ("t", "b")}
    assert database.run("select A from T where b = '1'").reads == {("t", "a"), ("t", "b")}, "the second time too"


def test_threads_share_a_database(database: ReadOnlyDatabase) -> None:
    queries = [f"select a from t where a = {number}" for number in range(50)]
    with ThreadPoolExecutor(8) as pool:
        assert [result.rows for result in pool.map(database.run, queries)] == [((number,),) for number in range(50)]


def test_a_file_is_opened_read_only(tmp_path: Path) -> None:
    file = tmp_path / "a b.sqlite"
    file.write_bytes(CONTENT)
    database = ReadOnlyDatabase(file)
    assert database.run("select count(*) from t").rows == ((100,),)
    assert database.run("delete from t").error is QueryError.DENIED
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_bytes() == CONTENT
    database.close()


def test_values_that_are_no_text_are_read(tmp_path: Path) -> None:
    file = tmp_path / "odd.sqlite"
    with sqlite3.connect(file) as made:
        made.execute("create table odd (value)")
        made.execute("insert into odd values (cast(x'ff41' as text)), (x'00ff'), (null), (1.5)")
    assert ReadOnlyDatabase(file).run("select value from odd").rows == (("\ufffdA",), (b"\x00\xff",), (None,), (1.5,))


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got no file"):
        ReadOnlyDatabase(tmp_path / "none.sqlite")
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    with pytest.raises(ValueError, match="need a SQLite database"):
        ReadOnlyDatabase(tmp_path / "text.sqlite")
    with pytest.raises(ValueError, match="above 0"):
        QueryLimits(rows=0)


def test_threads_share_the_clock() -> None:
    databases = [ReadOnlyDatabase(CONTENT) for _ in range(8)]
    sql = "select count(distinct strftime('%Y', '2020-01-01', a || ' years')), max(date('now')) from t"
    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(lambda database: database.run(sql).rows, databases * 5)]
    assert results == [((100, "2025-01-01"),)] * 40
