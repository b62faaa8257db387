"""Folders in the layouts of Spider and BIRD, written here."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from bough.env import Split
from bough.env.sqlite.read_only import ReadOnlyDatabase
from bough.tree import Action, Outcome, Task, ToolCall
from bough.worlds.sql import BirdFolder, SpiderFolder, Sql

SPLITS: tuple[Split, ...] = get_args(Split)


def make_database(folder: Path, name: str, ages: tuple[int, ...], file: str = "") -> None:
    place = folder / name / f"{file or name}.sqlite"
    place.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(place) as database:
        database.executescript(
            "create table Owner (id int primary key, name text);"
            'create table pet (id int, "pet age" int, owner int, foreign key (owner) references Owner(id));'
            "insert into Owner values (1, 'ann'), (2, 'bob');"
        )
        rows = [(number, age, 1 + number % 2) for number, age in enumerate(ages)]
        database.executemany("insert into pet values (?, ?, ?)", rows)
    database.close()


def tables_entry(name: str) -> dict[str, object]:
    return {
        "db_id": name,
        "table_names_original": ["Owner", "pet"],
        "column_names_original": [[-1, "*"], [0, "id"], [0, "name"], [1, "id"], [1, "pet age"], [1, "owner"]],
        "column_types": ["text", "number", "text", "number", "number", "number"],
        "primary_keys": [1, 3],
        "foreign_keys": [[5, 1]],
    }


def spider_entry(name: str, number: int = 0) -> dict[str, object]:
    return {
        "db_id": name,
        "question": f"How old is the oldest pet?\n{number}",
        "query": 'SELECT max("pet age") FROM pet ;',
        "query_toks": ["SELECT"],
        "sql": {"select": []},
    }


def write(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def spider(folder: Path, *, train: bool = True, databases: int = 10) -> SpiderFolder:
    names = [f"db_{number}" for number in range(databases)]
    write(folder / "tables.json", [tables_entry(name) for name in [*names, "school"]])
    write(folder / "dev.json", [spider_entry(name, number) for name in names for number in range(2)])
    if train:
        write(folder / "train_spider.json", [spider_entry("school", number) for number in range(3)])
        write(folder / "train_others.json", [spider_entry("school", number) for number in range(2, 5)])
    for name in [*names, "school"]:
        make_database(folder / "database", name, (3, 9, 5))
    return SpiderFolder(folder=str(folder))


def test_spider_has_training_questions_and_divides_dev_by_database(tmp_path: Path) -> None:
    source = spider(tmp_path)
    assert len(source.tasks("train", 5, 0)) == 5, "three and three, one of them in both files"
    dev, test = source.tasks("dev", 10, 0), source.tasks("test", 10, 0)
    assert not {task.data["database"] for task in dev} & {task.data["database"] for task in test}
    with pytest.raises(ValueError, match=r"got count=11 .* 5 of 'train', 10 of 'dev', 10 of 'test'"):
        source.tasks("dev", 11, 0)
    assert source.tasks("dev", 3, 7) == source.tasks("dev", 10, 7)[:3]
    write(tmp_path / "test.json", [spider_entry("school", 9)])
    source = SpiderFolder(folder=str(tmp_path), variants=1)
    assert [len(source.tasks(split, count, 0)) for split, count in (("dev", 20), ("test", 1))] == [20, 1]  # type: ignore[arg-type]


def test_spider_without_training_files_divides_dev_in_three(tmp_path: Path) -> None:
    source = spider(tmp_path, train=False)
    databases = [{task.data["database"] for task in source.tasks(split, count, 0)}
                 for split, count in (("train", 16), ("dev", 2), ("test", 2))]  # type: ignore[arg-type]  # fmt: skip
    assert [len(each) for each in databases] == [8, 1, 1]
    assert len(set().union(*databases)) == 10


def test_an_episode_on_spider(tmp_path: Path) -> None:
    source = spider(tmp_path)
    env = Sql(questions=source)
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert str(state.observation).startswith(
        'Owner(id number, name text)\npet(id number, "pet age" number, owner number -> Owner.id)\nHow old'
    )
    plan = env.plan(state)
    assert plan is not None
    for action in plan:
        step = env.step(state, action)
        state = step.state
    assert step.success
    assert env.data_hash == source.data_hash
    written = Action(calls=(ToolCall(name="answer", arguments={"sql": "select 9"}),))
    assert env.step(env.start(task), written).success, "one database"
    make_database(tmp_path / "database", "school", (1, 2), "school_v1")
    suite = Sql(questions=SpiderFolder(folder=str(tmp_path), variants=4))
    assert not suite.step(suite.start(task), written).success
    assert suite.step(suite.start(task), plan[-1]).success


def test_a_database_without_a_schema_file_is_read(tmp_path: Path) -> None:
    source = spider(tmp_path)
    shown = source.schema("db_1").describe(types=False)
    write(tmp_path / "tables.json", [])
    assert SpiderFolder(folder=str(tmp_path), variants=2).schema("db_1").describe(types=False) == shown


def bird_entry(name: str) -> dict[str, object]:
    return {
        "question_id": 0,
        "db_id": name,
        "question": "How many owners have an old pet?",
        "evidence": "old means pet age > 4",
        "SQL": 'SELECT T2.name FROM pet AS T1 JOIN Owner AS T2 ON T1.owner = T2.id WHERE T1."pet age" > 4',
        "difficulty": "simple",
    }


@pytest.mark.parametrize("nested", [False, True])
def test_bird_has_evidence_and_compares_sets(tmp_path: Path, nested: bool) -> None:
    dev, train = (tmp_path / "dev_2024", tmp_path / "train") if nested else (tmp_path, tmp_path)
    write(dev / "dev.json", [bird_entry("a"), bird_entry("b")])
    write(dev / "dev_tables.json", [tables_entry("a"), tables_entry("b")])
    write(train / "train.json", [bird_entry("c")])
    write(train / "train_tables.json", [tables_entry("c")])
    for folder, name in ((dev / "dev_databases", "a"), (dev / "dev_databases", "b"), (train / "train_databases", "c")):
        make_database(folder, name, (9, 2, 8, 7))
    env = Sql(questions=BirdFolder(folder=str(tmp_path)), single_turn=True)
    assert [len(env.tasks(split, 1, 0)) for split in SPLITS] == [1, 1, 1]
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert "\nhint: old means pet age > 4\n" in str(state.observation)
    step = env.step(state, "```sql\nselect distinct name from Owner\n```")
    assert (step.success, step.outcome) == (True, Outcome.TERMINATED), "a set, though the gold query repeats a name"
    strict = Sql(questions=BirdFolder(folder=str(tmp_path), evidence=False), match=SpiderFolder(folder="").match)
    assert "hint" not in str(strict.start(strict.tasks("train", 1, 0)[0]).observation)
    assert not strict.step(strict.start(task), Action(text="select distinct name from Owner")).success


def test_folders_that_lack_something_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        SpiderFolder(folder=str(tmp_path / "none")).tasks("dev", 1, 0)
    with pytest.raises(ValueError, match=r"no file dev.json"):
        SpiderFolder(folder=str(tmp_path)).tasks("dev", 1, 0)
    with pytest.raises(ValueError, match="0 or more"):
        SpiderFolder(folder=str(tmp_path), variants=-1)
    write(tmp_path / "dev.json", [{"db_id": "x", "question": "?"}])
    with pytest.raises(ValueError, match="entry 0 has no 'query'"):
        SpiderFolder(folder=str(tmp_path)).tasks("dev", 1, 0)
    (tmp_path / "dev.json").write_text("[")
    with pytest.raises(ValueError, match="no JSON"):
        SpiderFolder(folder=str(tmp_path)).tasks("dev", 1, 0)
    write(tmp_path / "dev.json", [spider_entry("../outside")])
    make_database(tmp_path, "outside", (1,))
    (tmp_path / "database").mkdir()
    with pytest.raises(
        ValueError, match=r"1 of 1 databases of split 'train' that cannot be read: \.\./outside \(missing"
    ):
        SpiderFolder(folder=str(tmp_path)).tasks("train", 1, 0)
    with pytest.raises(ValueError, match=r"no database '\.\./outside'"):
        SpiderFolder(folder=str(tmp_path)).contents("../outside")


def test_databases_that_cannot_be_read_are_listed_before_the_first_task(tmp_path: Path) -> None:
    source = spider(tmp_path)
    school = tmp_path / "database" / "school" / "school.sqlite"
    whole = school.read_bytes()
    assert source.tasks("train", 1, 0)
    tasks = [*all_tasks(source, "dev"), *all_tasks(source, "test")]
    names = sorted({str(task.data["database"]) for task in tasks})
    assert len(names) == 10
    school.write_bytes(whole[:5000])
    for name, bad in zip(names, (b"", b"no database", None), strict=False):
        file = tmp_path / "database" / name / f"{name}.sqlite"
        file.unlink() if bad is None else file.write_bytes(bad)
    problems = [f"{names[0]} ({names[0]}.sqlite: no tables)", f"{names[1]} (", f"{names[2]} (missing)"]
    found = dict[str, str]()
    for split in SPLITS:
        with pytest.raises(ValueError, match="databases of split") as caught:
            replace(source, variants=1).tasks(split, 1, 0)
        found[split] = str(caught.value)
    assert "school (school.sqlite: " in found["train"]
    assert "1 of 1 databases of split 'train'" in found["train"]
    assert all(any(problem in found[split] for split in ("dev", "test")) for problem in problems)
    assert "add them, or remove their questions" in found["dev"]


def test_a_list_of_many_missing_databases_is_cut(tmp_path: Path) -> None:
    write(tmp_path / "dev.json", [spider_entry(f"db_{number}") for number in range(60)])
    source = SpiderFolder(folder=str(tmp_path))
    with pytest.raises(
        ValueError, match=r"got 48 of 48 databases of split 'train'.* \(missing\) and 28 more; need NAME"
    ):
        source.tasks("train", 1, 0)


def test_a_message_about_too_many_questions_names_the_setting(tmp_path: Path) -> None:
    write(tmp_path / "dev.json", [spider_entry(f"db_{number}") for number in range(60)])
    source = SpiderFolder(folder=str(tmp_path))
    with pytest.raises(ValueError, match=r"got count=99 .*need fewer \(tasks.count; evaluation.tasks.count for held-"):
        source.tasks("train", 99, 0)


def all_tasks(source: SpiderFolder, split: Split) -> list[Task]:
    with pytest.raises(ValueError, match="there are") as caught:
        source.tasks(split, 10**6, 0)
    found = re.search(rf"(\d+) of '{split}'", str(caught.value))
    assert found is not None
    return source.tasks(split, int(found[1]), 0)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_database_with_changes_beside_it_is_refused_by_name(tmp_path: Path, mode: str) -> None:
    source = spider(tmp_path)
    school = tmp_path / "database" / "school" / "school.sqlite"
    with closing(sqlite3.connect(school, isolation_level=None)) as writer:
        writer.execute(f"pragma journal_mode={mode}")
        writer.execute("pragma cache_size=1")  # changes are spilled to the file before the commit
        writer.execute("begin")
        writer.executemany("insert into pet values (?, 3, 1)", [(number,) for number in range(100, 5000)])
        if mode == "wal":
            writer.execute("commit")
        journal = school.with_name(school.name + ("-wal" if mode == "wal" else "-journal"))
        with pytest.raises(ValueError, match=rf"school \(.*{journal.name} beside it, with .*'pragma journal_mode"):
            source.tasks("train", 1, 0)
        with pytest.raises(ValueError, match="with changes that the file lacks"):
            ReadOnlyDatabase(school)
        if mode == "delete":
            writer.execute("rollback")
    journal.write_bytes(bytes(512))
    assert source.tasks("train", 1, 0), "a journal that was applied"
