"""Spider and BIRD: the questions and databases of folders that the user has."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from bough.env.env import Split
from bough.piece import AtLeast, piece
from bough.tree import Task
from bough.worlds.sql.match import Match
from bough.worlds.sql.question_files import Keys, QuestionFiles
from bough.worlds.sql.schema import Schema


@piece
class SpiderFolder:
    """The Spider data set (arXiv 1809.08887) in a folder: questions, schemas and databases.

    The layout is the official one: `dev.json`, `tables.json`, `database/NAME/NAME.sqlite`, and `train_spider.json` with
    `train_others.json`, both optional. Further SQLite files in the folder of a database are its test suite (arXiv
    2010.02840): an answer must match on them too.

    Without a test file, half of the databases of `dev.json` are the test split; without training files, the databases
    of `dev.json` are divided among the three splits. No database is in two splits.

    Attributes:
        folder: The folder.
        train: Files of training questions.
        dev: Files of dev questions.
        test: Files of test questions.
        variants: Maximum number of further databases on which an answer must match.

    Raises:
        ValueError: when `variants` is negative.
    """

    folder: str
    train: tuple[str, ...] = ("train_spider.json", "train_others.json")
    dev: tuple[str, ...] = ("dev.json",)
    test: tuple[str, ...] = ("test.json",)
    variants: Annotated[int, AtLeast(0, "0 or more")] = 0

    @property
    def match(self) -> Match:
        """The comparison of Spider's test-suite evaluation."""
        return Match()

    @property
    def data_hash(self) -> str:
        """SHA-256 of the files of questions."""
        return _spider(self).digest

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer, or the folder has no Spider data set.
        """
        return _spider(self).draw(split, count, seed)

    def schema(self, database: str) -> Schema:
        """The schema of a database.

        Raises:
            ValueError: when there is no such database.
        """
        return _spider(self).schema(database)

    def contents(self, database: str) -> tuple[Path, ...]:
        """The database that queries read, then those of its test suite.

        Raises:
            ValueError: when there is no such database.
        """
        return tuple(_spider(self).databases(database)[: 1 + self.variants])


@piece
class BirdFolder:
    """The BIRD data set (arXiv 2305.03111) in a folder: questions with evidence, and databases.

    The layout is the official one: `dev.json`, `dev_tables.json` and `dev_databases/NAME/NAME.sqlite`. The training
    files have `train` in place of `dev`. They are in the folder or directly below it. The evidence is the hint.

    Half of the databases of `dev.json` are the test split; without `train.json`, the databases of `dev.json` are
    divided among the three splits. No database is in two splits.

    Attributes:
        folder: The folder.
        evidence: Whether the question comes with its evidence.
    """

    folder: str
    evidence: bool = True

    @property
    def match(self) -> Match:
        """BIRD's comparison: sets of rows."""
        return Match(rows="set", order="never", permute_columns=False)

    @property
    def data_hash(self) -> str:
        """SHA-256 of the files of questions."""
        return _bird(self).digest

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer, or the folder has no BIRD data set.
        """
        return _bird(self).draw(split, count, seed)

    def schema(self, database: str) -> Schema:
        """The schema of a database.

        Raises:
            ValueError: when there is no such database.
        """
        return _bird(self).schema(database)

    def contents(self, database: str) -> tuple[Path, ...]:
        """The database.

        Raises:
            ValueError: when there is no such database.
        """
        return (_bird(self).databases(database)[0],)


@lru_cache(maxsize=8)
def _spider(source: SpiderFolder) -> QuestionFiles:
    return QuestionFiles(
        Path(source.folder).expanduser(),
        files={"train": source.train, "dev": source.dev, "test": source.test},
        keys=Keys(sql="query"),
        tables=("tables.json", "test_tables.json"),
        databases=("database", "test_database"),
        name="spider",
    )


@lru_cache(maxsize=8)
def _bird(source: BirdFolder) -> QuestionFiles:
    return QuestionFiles(
        Path(source.folder).expanduser(),
        files={"train": ("train.json",), "dev": ("dev.json",), "test": ()},
        keys=Keys(sql="SQL", hint="evidence" if source.evidence else ""),
        tables=("train_tables.json", "dev_tables.json"),
        databases=("train_databases", "dev_databases"),
        name="bird",
    )
