"""Syntax trees by sqlglot: components, sub-queries, similarity, and what is paid by them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env.sqlite.read_only import ReadOnlyDatabase
from bough.tree import Action, Outcome, ToolCall
from bough.worlds.sql import GeneratedQuestions, Sql
from bough.worlds.sql.partial_credit import PartialCredit
from bough.worlds.sql.questions import open_databases
from bough.worlds.sql.schema import Column, Schema, Table
from bough.worlds.sql.syntax import component_recall, components, similarity, sub_queries

SCHEMA = Schema(
    tables=(
        Table(name="pets", columns=tuple(Column(name=name) for name in ("id", "name", "age", "owner"))),
        Table(name="people", columns=tuple(Column(name=name) for name in ("id", "name", "city"))),
    )
)
GOLD = (
    "select pets.name from pets join people on pets.owner = people.id where people.city = 'rome' and pets.age > 3 "
    "order by pets.age desc limit 1"
)
ALIASED = (
    "SELECT p.NAME AS x FROM pets p JOIN people AS o ON o.id = p.owner WHERE age > 3 AND 'rome' = city "
    "ORDER BY age DESC LIMIT 1"
)


def test_components_do_not_depend_on_spelling() -> None:
    assert components(GOLD, SCHEMA) == components(ALIASED, SCHEMA)
    assert len(components(GOLD, SCHEMA)) == 8
    other = GOLD.replace("'rome'", "'Rome'")
    assert components(GOLD, SCHEMA) - components(other, SCHEMA) == {"condition 'rome' = people.city"}
    assert components(GOLD.replace("desc", "asc"), SCHEMA) != components(GOLD, SCHEMA)


def test_components_of_nested_queries_are_included() -> None:
    nested = components("select name from people where id not in (select owner from pets where age > 3)", SCHEMA)
    assert {"table pets", "column pets.owner", "condition pets.age > 3", "column people.name"} <= nested


def test_matched_shares_add_up() -> None:
    parts = ["select * from pets where age > 3", "select name from people where city = 'rome'"]
    shares = [component_recall([each], GOLD, SCHEMA) for each in parts]
    assert component_recall([], GOLD, SCHEMA) == 0
    assert shares == [2 / 8, 2 / 8]
    assert component_recall(parts, GOLD, SCHEMA) == 4 / 8
    assert component_recall([ALIASED], GOLD, SCHEMA) == 1


def test_similarity_falls_with_the_distance() -> None:
    queries = (
        ALIASED.replace("age > 3 AND 'rome' = city", "'rome' = city AND age > 3"),
        ALIASED,
        GOLD.replace("limit 1", ""),
        "select name from pets",
        "no query",
    )
    values = [similarity(each, GOLD, SCHEMA) for each in queries]
    assert values[0] == similarity(GOLD, GOLD, SCHEMA) == 1.0
    assert values == sorted(values, reverse=True)
    assert len({*values}) == len(values)
    assert values[-1] == 0.0


@pytest.mark.parametrize(
    "sql",
    ["", "\0", "\ud800", "drop table x", "select 1; select 2", "select " + "(" * 3000 + "1" + ")" * 3000,
     "select " + " + ".join(["age"] * 2000) + " from pets", "select case " * 500, "select '" + "x" * 9000],
)  # fmt: skip
def test_text_that_is_no_query_has_no_components(sql: str) -> None:
    assert components(sql, SCHEMA) == frozenset()
    assert similarity(sql, GOLD, SCHEMA) == 0
    assert sub_queries(sql) == (sql,)


@settings(max_examples=40)
@given(st.text() | st.text().map(lambda text: f"select {text} from pets"))
def test_any_text_has_a_similarity(sql: str) -> None:
    assert 0 <= similarity(sql, GOLD, SCHEMA) <= 1
    assert 0 <= component_recall([sql], GOLD, SCHEMA) <= 1
    assert sub_queries(sql)[-1] == sql


def test_sub_queries_grow_to_the_query() -> None:
    found = sub_queries(
        "select owner, count(*) from pets where age > 3 and id < 9 group by owner having count(*) > 1 order by 2"
    )
    start, count = "SELECT * FROM pets", "SELECT owner, COUNT(*) FROM pets WHERE age > 3 AND id < 9 GROUP BY owner"
    assert found[:-1] == (
        start,
        f"{start} WHERE age > 3",
        f"{start} WHERE age > 3 AND id < 9",
        count,
        f"{count} HAVING COUNT(*) > 1",
    )


@pytest.mark.parametrize(
    "sql",
    [
        "with x as (select avg(age) as a from pets) select name from pets, x where age > x.a",
        "select name from pets where age = 1 union select name from people",
        "select name from pets p where age > (select avg(age) from pets q where q.owner = p.owner)",
        "select name from people where id in (select owner from pets where age > (select avg(age) from pets))",
        "select t.n from (select name as n, age from pets where age > 2) as t order by t.age limit 2",
    ],
)
def test_sub_queries_of_nested_queries_execute(sql: str) -> None:
    import sqlite3

    made = sqlite3.connect(":memory:")
    made.executescript("create table pets (id, name, age, owner); create table people (id, name, city)")
    database = ReadOnlyDatabase(made.serialize())
    found = sub_queries(sql)
    assert len(found) > 2
    assert [each for each in found if database.run(each).error] == []


QUESTIONS = GeneratedQuestions(databases=30)


def test_sub_queries_of_generated_questions_execute_and_lead_to_the_answer() -> None:
    env = Sql(questions=QUESTIONS, oracle="components", max_queries=12)
    lengths: set[int] = set()
    for task in env.tasks("train", 60, 0):
        database = open_databases(QUESTIONS, str(task.data["database"]))[0]
        found = sub_queries(str(task.data["sql"]))
        assert all(not database.run(each).error for each in found)
        state = env.start(task)
        plan = env.plan(state)
        assert plan is not None
        lengths.add(len(plan))
        for action in plan:
            step = env.step(state, action)
            assert step.valid
            state = step.state
        assert step.success
    assert max(lengths) > 5


def test_progress_is_paid_once_and_adds_up() -> None:
    env = Sql(questions=QUESTIONS, oracle="components", max_queries=12, partial=PartialCredit(progress=0.4))
    for task in env.tasks("train", 20, 1):
        state, paid = env.start(task), list[float]()
        plan = env.plan(state)
        assert plan is not None
        for action in plan[:-1]:
            step = env.step(state, action)
            assert env.step(step.state, action).reward == 0, "the same query again"
            assert step.outcome == Outcome.OPEN
            paid.append(step.reward)
            state = step.state
        assert min(paid) >= 0
        assert sum(paid) == pytest.approx(0.4), "the last sub-query is the gold query"
        assert env.step(state, plan[-1]).reward == 1


def test_syntax_pays_a_wrong_answer_by_its_similarity() -> None:
    env = Sql(questions=QUESTIONS, partial=PartialCredit(executes=0, columns=0, rows=0, syntax=0.5))
    (task,) = env.tasks("train", 1, 0)
    gold = str(task.data["sql"])
    schema = QUESTIONS.schema(str(task.data["database"]))
    for sql in ("select 1", gold.replace("select", "select id,")):
        action = Action(calls=(ToolCall(name="answer", arguments={"sql": sql}),))
        step = env.step(env.start(task), action)
        assert not step.success
        assert step.reward == pytest.approx(0.5 * similarity(sql, gold, schema))
