"""Generated questions: right, answerable, different from trivial queries, and split by content."""

import subprocess
import sys
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Split
from bough.tree import Task
from bough.worlds.sql import GeneratedQuestions
from bough.worlds.sql.entities import ENTITIES
from bough.worlds.sql.generated import TIERS, TWO_TABLES, QuestionInstance
from bough.worlds.sql.generated_tables import spell
from bough.worlds.sql.questions import open_databases, orders_rows

SPLITS: tuple[Split, ...] = get_args(Split)
QUESTIONS = GeneratedQuestions(databases=60)


def content(questions: GeneratedQuestions, task: Task) -> str:
    return f"{questions.schema(str(task.data['database'])).content}\n{task.data['sql']}"


def test_every_tier_has_its_templates_and_all_are_used() -> None:
    tasks = QUESTIONS.tasks("train", 400, 0)
    used = {(task.data["tier"], task.data["template"]) for task in tasks}
    assert used == {(tier, each.__name__) for tier, templates in TIERS.items() for each in templates}
    assert len({task.data["question"] for task in tasks}) > 300


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_a_tier_has_its_kind_of_query(tier: int) -> None:
    for task in GeneratedQuestions(tiers=(tier,), databases=60).tasks("test", 20, 0):
        sql = str(task.data["sql"])
        assert (" join " in sql) == (tier == 3) or tier == 4
        assert any(each in sql for each in ("group by", "(select")) == (tier == 4)
        assert "where" in sql or tier in (2, 4)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), split=st.sampled_from(SPLITS))
def test_gold_queries_have_a_result_of_their_own(seed: int, split: Split) -> None:
    for task in QUESTIONS.tasks(split, 5, seed):
        database, *variants = open_databases(QUESTIONS, str(task.data["database"]))
        gold = database.run(str(task.data["sql"]))
        assert not gold.error
        assert gold.rows
        assert any(value not in (None, 0) for row in gold.rows for value in row)
        tables = QUESTIONS.schema(str(task.data["database"])).tables
        for table in tables:
            for column in ("*", "name", "count(*)"):
                trivial = f"select {column} from {table.name}"
                pairs = [(each.run(str(task.data["sql"])), each.run(trivial)) for each in (database, *variants)]
                assert not all(QUESTIONS.match.equal(*pair, ordered=False) for pair in pairs)
        assert len(variants) == 1
        assert not variants[0].run(str(task.data["sql"])).error
        names = [each.run(f"select * from {tables[0].name}").rows for each in (database, variants[0])]
        assert names[0] != names[1], "a variant has other rows"


def test_similar_queries_have_other_results(monkeypatch: pytest.MonkeyPatch) -> None:
    instances: list[QuestionInstance] = []
    make = GeneratedQuestions._task  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(
        GeneratedQuestions, "_task", lambda self, instance: instances.append(instance) or make(self, instance)
    )
    QUESTIONS.tasks("train", 150, 3)
    assert len(instances) == 150
    for instance in instances:
        question, database = instance.question, open_databases(QUESTIONS, str(instance.database))[0]
        gold, ordered = database.run(question.sql), orders_rows(question.sql)
        assert question.wrong
        for sql in question.wrong:
            assert not database.run(sql).error, sql
            assert not QUESTIONS.match.equal(gold, database.run(sql), ordered=ordered), (question.sql, sql)
        for sql in question.equivalent:
            assert QUESTIONS.match.equal(gold, database.run(sql), ordered=ordered), (question.sql, sql)
        for sql in question.lookups:
            assert database.run(sql).rows


def test_answers_that_write_the_result_down_fail_on_the_variant() -> None:
    failed = 0
    tasks = GeneratedQuestions(tiers=(2,), databases=60).tasks("train", 40, 0)
    for task in tasks:
        databases = open_databases(GeneratedQuestions(tiers=(2,), databases=60), str(task.data["database"]))
        gold = [each.run(str(task.data["sql"])) for each in databases]
        rows = ", ".join(f"({', '.join(repr(value) for value in row)})" for row in gold[0].rows)
        written = [each.run(f"values {rows}") for each in databases]
        assert QUESTIONS.match.equal(gold[0], written[0], ordered=True)
        failed += not QUESTIONS.match.equal(gold[1], written[1], ordered=True)
    assert failed > 0.85 * len(tasks)


def test_the_question_has_the_plain_word_and_a_lookup_shows_the_stored_one() -> None:
    questions = GeneratedQuestions(spellings=("upper",), tiers=(1,), databases=30)
    assert all(not task.data["lookups"] for task in questions.tasks("train", 20, 0)), "one spelling needs no lookup"
    seen = 0
    for task in QUESTIONS.tasks("train", 100, 1):
        for lookup in task.data["lookups"]:  # type: ignore[attr-defined]
            words = [str(row[0]) for row in open_databases(QUESTIONS, str(task.data["database"]))[0].run(lookup).rows]
            stored = [word for word in words if f"'{word}'" in str(task.data["sql"])]
            assert stored
            seen += any(word not in str(task.data["question"]) for word in stored)
    assert seen > 10


def test_spellings_keep_the_words_of_a_column_apart() -> None:
    for name, entity in ENTITIES.items():
        for column, words in entity.categories.items():
            assert len({spell(word, "short") for word in words}) == len(words), (name, column)
        assert len({*entity.names}) == 24
        for low, high in entity.numbers.values():
            assert high - low >= 24, (name, "numbers of a column differ")


@pytest.mark.parametrize("split_by", ["question", "schema"])
def test_splits_share_no_text_and_no_schema_with_query(split_by: str) -> None:
    questions = GeneratedQuestions(databases=40, split_by=split_by)  # type: ignore[arg-type]
    contents, schemas, texts = {}, {}, {}
    for split in SPLITS:
        tasks = [task for seed in (0, 1) for task in questions.tasks(split, 60 if split == "train" else 15, seed)]
        contents[split] = {content(questions, task) for task in tasks}
        schemas[split] = {each.partition("\nselect")[0] for each in contents[split]}
        texts[split] = {str(task.data["question"]) for task in tasks}
    for one, two in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not contents[one] & contents[two]
        assert not texts[one] & texts[two]
        assert bool(schemas[one] & schemas[two]) == (split_by == "question")


def test_tasks_are_a_prefix_and_the_same_in_another_process() -> None:
    tasks = QUESTIONS.tasks("test", 6, 5)
    assert QUESTIONS.tasks("test", 3, 5) == tasks[:3]
    assert {task.id for task in tasks} != {task.id for task in QUESTIONS.tasks("test", 6, 6)}
    program = (
        "from bough.worlds.sql import GeneratedQuestions as G; q = G(databases=60);"
        "print([(t.id, t.data['question'], [hash(x) and x.hex()[-400:] for x in q.contents(t.data['database'])])"
        " for t in q.tasks('test', 6, 5)])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = [
        (t.id, t.data["question"], [x.hex()[-400:] for x in QUESTIONS.contents(str(t.data["database"]))]) for t in tasks
    ]
    assert output.strip() == str(here)


def test_one_table_has_the_templates_that_need_no_parent() -> None:
    questions = GeneratedQuestions(tables=1, tiers=(1, 2, 4), databases=30)
    assert {len(questions.schema(str(number)).tables) for number in range(30)} == {1}
    names = {task.data["template"] for task in questions.tasks("train", 150, 0)}
    assert names == {each.__name__ for tier in (1, 2, 4) for each in TIERS[tier] if each not in TWO_TABLES}


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"tiers": ()}, "tiers"),
        ({"tiers": (5,)}, "tiers"),
        ({"tables": 1}, "need tables=2 for tier 3"),
        ({"tables": 3}, "need a number from 1 to 2"),
        ({"rows": 3}, "GeneratedQuestions.rows: got 3; need a number from 4 to 24"),
        ({"columns": 3}, "need a number from 1 to 2"),
        ({"spellings": ("latin",)}, "plain"),
        ({"databases": 0}, "GeneratedQuestions.databases: got 0; need at least 1"),
        ({"variants": -1}, "GeneratedQuestions.variants: got -1; need at least 0"),
    ],
)
def test_wrong_settings_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GeneratedQuestions(**settings_)  # type: ignore[arg-type]


def test_a_database_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="need a number"):
        QUESTIONS.schema("../x")
