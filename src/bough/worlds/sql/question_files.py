"""Reads folders of questions and databases in the layouts of Spider and BIRD."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

from bough.env.env import Split
from bough.env.splits import content_hash, instance_task
from bough.env.sqlite.execution import connect_file
from bough.tree import Task
from bough.usercode.json_file import read_json
from bough.worlds.sql.schema import Column, Schema, Table

LISTED = 20
"""Maximum number of databases that a message lists."""

SHARES = (0.8, 0.9)
"""Where the databases of one file are divided into training, dev and test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a question in a file: those of the gold query and of the hint; "" for no hint."""

    sql: str
    hint: str = ""


class QuestionFiles:
    """The questions and databases of a folder.

    A file is in the folder or in a folder directly below it. Without training files, the databases of the dev files are
    divided among the three splits, 80, 10 and 10 of 100. Without test files, half of the databases of the dev files are
    the test split. Either way no database is in two splits.

    Args:
        folder: The folder.
        files: The names of the files of each split.
        keys: The keys of a question.
        tables: Names of the files with the schemas.
        databases: Names of the folders with the databases: `NAME/NAME.sqlite` in one of them.
        name: Begins the ids of tasks, and names the source in errors.

    Raises:
        ValueError: when the folder or every dev file is missing, or a file has another form.
    """

    def __init__(
        self,
        folder: Path,
        *,
        files: Mapping[Split, Sequence[str]],
        keys: Keys,
        tables: Sequence[str],
        databases: Sequence[str],
        name: str,
    ) -> None:
        self.name, self.folder = name, folder
        if not folder.is_dir():
            raise ValueError(f"{name}: got {folder}, which is no folder; need the folder of the data set")
        self._databases = [place for each in databases for place in self._find(each)]
        self._checked: set[Split] = set()
        self._schemas: dict[str, Schema] = {}
        for file in (place for each in tables for place in self._find(each)):
            self._schemas |= {str(entry["db_id"]): _schema(entry) for entry in _entries(file, ("db_id",))}
        found = {split: [place for each in names for place in self._find(each)] for split, names in files.items()}
        if not found["dev"]:
            raise ValueError(f"{name}: got no file {' or '.join(files['dev'])} in {folder}; need the data set there")
        every = [place for places in found.values() for place in places]
        self.digest = sha256(b"\n".join(place.read_bytes() for place in every)).hexdigest()
        self.by_split = _divided(
            dict[Split, list[Task]]((split, self._questions(found[split], keys)) for split in files)
        )

    def draw(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` questions of a split in an order that depends on the seed.

        Raises:
            ValueError: when the split has fewer, or databases of its questions are missing or cannot be read.
        """
        tasks = self.by_split[split]
        if not 0 <= count <= len(tasks):
            sizes = ", ".join(f"{len(found)} of {each!r}" for each, found in self.by_split.items())
            raise ValueError(
                f"{self.name}: got count={count} for split {split!r}; there are {sizes}: need fewer "
                "(tasks.count; evaluation.tasks.count for held-out questions)"
            )
        if split not in self._checked:
            self._check_databases(split)
            self._checked.add(split)
        return Random(f"{self.name} {seed} {split}").sample(tasks, len(tasks))[:count]

    def schema(self, database: str) -> Schema:
        """The schema of a database: of the files with schemas, else of the database itself."""
        return self._schemas.get(database) or _schema_of_file(self.databases(database)[0])

    def databases(self, database: str) -> list[Path]:
        """The file of a database, and the other SQLite files beside it: other rows in the same schema.

        Raises:
            ValueError: when there is none.
        """
        for place in self._databases if Path(database).name == database else []:
            file = place / database / f"{database}.sqlite"
            if file.is_file():
                return [file, *(each for each in sorted(file.parent.glob("*.sqlite")) if each != file)]
        raise ValueError(
            f"{self.name}: got no database {database!r}; need {database}/{database}.sqlite in a folder of "
            f"{[*map(str, self._databases)] or self.folder}"
        )

    def _check_databases(self, split: Split) -> None:
        """Raises a ValueError that lists the databases of a split that are missing or cannot be read."""
        names = sorted({str(task.data["database"]) for task in self.by_split[split]})
        found = {name: self._problem(name) for name in names}
        wrong = [f"{name} ({problem})" for name, problem in found.items() if problem]
        if wrong:
            more = f" and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
            raise ValueError(
                f"{self.name}: got {len(wrong)} of {len(names)} databases of split {split!r} that cannot be read: "
                f"{', '.join(wrong[:LISTED])}{more}; need NAME/NAME.sqlite for each in a folder of "
                f"{[*map(str, self._databases)] or self.folder}: add them, or remove their questions"
            )

    def _problem(self, name: str) -> str:
        """Why a database cannot be read; "" when it can."""
        try:
            files = self.databases(name)
        except ValueError:
            return "missing"
        for file in files:
            try:
                with closing(connect_file(file)) as database:
                    (tables,) = database.execute("select count(*) from sqlite_master where type = 'table'").fetchone()
                    (pages,), (size,) = (
                        database.execute(f"pragma {each}").fetchone() for each in ("page_count", "page_size")
                    )
            except sqlite3.Error as error:
                return f"{file.name}: {error}"
            except ValueError as error:
                return str(error)
            if not tables:
                return f"{file.name}: no tables"
            if file.stat().st_size < pages * size:
                return f"{file.name}: cut at {file.stat().st_size} of {pages * size} bytes"
        return ""

    def _find(self, name: str) -> list[Path]:
        place = self.folder / name
        return [place] if place.exists() else sorted(self.folder.glob(f"*/{name}"))

    def _questions(self, files: Sequence[Path], keys: Keys) -> list[Task]:
        tasks: dict[str, Task] = {}
        for file in files:
            for entry in _entries(file, ("db_id", "question", keys.sql)):
                data: dict[str, object] = {
                    "database": str(entry["db_id"]),
                    "question": " ".join(str(entry["question"]).split()),
                    "sql": str(entry[keys.sql]).strip().rstrip(";"),
                    "hint": " ".join(str(entry.get(keys.hint) or "").split()) if keys.hint else "",
                    "lookups": [],
                    "tier": str(entry.get("difficulty", "")),
                }
                task = instance_task(name=self.name, content=json.dumps(data, sort_keys=True), data=data)
                tasks[task.id] = task
        return [*tasks.values()]


def _divided(questions: Mapping[Split, list[Task]]) -> dict[Split, list[Task]]:
    """The questions by split, with the dev files divided by database where files of other splits are missing."""
    train, dev, test = questions["train"], questions["dev"], questions["test"]
    names = sorted({str(task.data["database"]) for task in dev}, key=content_hash)
    at = {name: (place + 0.5) / len(names) for place, name in enumerate(names)}
    first, second = SHARES if not train else (0.0, 0.5)
    if test:
        second = 1.0
    found: dict[Split, list[Task]] = {"train": [*train], "dev": [], "test": [*test]}
    for task in dev:
        place = at[str(task.data["database"])]
        found["train" if place < first else "dev" if place < second else "test"].append(task)
    return found


def _entries(file: Path, keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """The entries of a JSON file, which is a list of objects with some keys."""
    entries = read_json(file, "a list of objects")
    listed = cast("list[object]", entries) if isinstance(entries, list) else [entries]
    for number, entry in enumerate(listed):
        missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise ValueError(f"{file}: entry {number} has no {missing[0]!r}; need a list of objects with {keys}")
    return cast("list[Mapping[str, Any]]", listed)


def _schema(entry: Mapping[str, Any]) -> Schema:
    """The schema of one entry of `tables.json`: columns refer to tables by index, and foreign keys to columns."""
    tables, columns = entry["table_names_original"], entry["column_names_original"]
    types = entry.get("column_types") or [""] * len(columns)
    links: dict[int, int] = dict(entry.get("foreign_keys") or [])

    def column(number: int) -> Column:
        target = links.get(number)
        to = "" if target is None else f"{tables[columns[target][0]]}.{columns[target][1]}"
        return Column(name=columns[number][1], type=types[number], links_to=to)

    return Schema(
        tables=tuple(
            Table(name=name, columns=tuple(column(at) for at, each in enumerate(columns) if each[0] == number))
            for number, name in enumerate(tables)
        )
    )


def _schema_of_file(file: Path) -> Schema:
    """The schema that a SQLite file has."""
    with closing(connect_file(file)) as database:
        names = [
            name for (name,) in database.execute("select name from sqlite_master where type = 'table' order by rowid")
        ]
        tables: list[Table] = []
        for name in (each for each in names if not each.startswith("sqlite_")):
            links = {
                row[0]: f"{row[1]}.{row[2] or 'id'}"
                for row in database.execute('select "from", "table", "to" from pragma_foreign_key_list(?)', [name])
            }
            columns = database.execute("select name, type from pragma_table_info(?)", [name]).fetchall()
            tables.append(
                Table(
                    name=name,
                    columns=tuple(
                        Column(name=each, type=kind.lower(), links_to=links.get(each, "")) for each, kind in columns
                    ),
                )
            )
    return Schema(tables=tuple(tables))
