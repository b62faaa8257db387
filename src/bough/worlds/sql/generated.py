"""Questions about generated databases, in four tiers."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias, get_args

from bough.env.env import Split
from bough.env.splits import content_hash, draw_instances, instance_task, split_of
from bough.env.sqlite.execution import OpenDatabase
from bough.env.sqlite.query import QueryLimits, QueryResult
from bough.piece import AtLeast, Between, SomeOf, piece
from bough.tree import Task
from bough.worlds.sql import one_table, two_tables
from bough.worlds.sql.generated_tables import GeneratedTables, Spelling, draw_tables, fill_tables
from bough.worlds.sql.match import Match
from bough.worlds.sql.question import SqlQuestion
from bough.worlds.sql.questions import orders_rows
from bough.worlds.sql.schema import Schema

Template: TypeAlias = Callable[[random.Random, GeneratedTables], SqlQuestion]

TIERS: Mapping[int, tuple[Template, ...]] = {
    1: (one_table.filter_category, one_table.filter_number, one_table.filter_name, one_table.filter_both),
    2: (
        one_table.count_category,
        one_table.aggregate,
        one_table.order_first,
        one_table.order_filtered,
        one_table.distinct,
    ),
    3: (two_tables.join_filter, two_tables.join_value, two_tables.join_count, two_tables.join_order),
    4: (
        two_tables.group_count,
        two_tables.group_having,
        two_tables.group_most,
        two_tables.group_average,
        two_tables.nested_average,
        two_tables.nested_missing,
    ),
}
"""The templates of each tier."""

TWO_TABLES = frozenset({*TIERS[3], two_tables.group_most, two_tables.group_average, two_tables.nested_missing})
"""The templates that need a table and its parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionInstance:
    """A question before its checks."""

    database: int
    tables: GeneratedTables
    tier: int
    template: str
    question: SqlQuestion

    @property
    def content(self) -> str:
        """Names the task: the schema and the gold query. The rows and the phrasing do not matter."""
        return f"{self.tables.schema.content}\n{self.question.sql}"

    @property
    def text(self) -> str:
        """Decides the split: the text in all phrasings, whatever the schema."""
        return "\n".join(self.question.phrasings)


@piece
class GeneratedQuestions:
    """Schemas, rows, questions and gold queries from seeds.

    Tier 1 filters one table; tier 2 adds aggregates, orders and limits; tier 3 joins a table and its parent; tier 4
    groups, filters groups and nests queries. A question is used only if the result of its gold query is neither empty
    nor zero. Every query that drops or reverses a part of the gold query must have another result.

    With several spellings a question has the plain word, such as "cat", and the column stores "cat", "CAT" or "ca". The
    schema does not show which one, so an agent has to read the column first.

    Attributes:
        tiers: Some of 1, 2, 3, 4.
        databases: Number of databases that the questions draw from.
        tables: Tables of a database: 2, or 1 for tiers 1, 2 and a part of 4.
        rows: Rows of the table that the questions are about.
        columns: Text columns of a table, and number columns of a table: 1 or 2.
        spellings: Some of "plain", "upper", "short"; each text column draws one.
        phrasings: Different phrasings of a question: 1 or 2.
        variants: Number of further databases with the same schema and other rows, on which an answer must match too.
            They reject an answer that contains the result itself (arXiv 2010.02840).
        split_by: What no two splits share. "question": the text of a question. "schema": a schema too.

    Raises:
        ValueError: when a field is out of its range.
    """

    tiers: Annotated[tuple[int, ...], SomeOf(TIERS)] = (1, 2, 3, 4)
    databases: Annotated[int, AtLeast(1)] = 400
    tables: Annotated[int, Between(1, 2)] = 2
    rows: Annotated[int, Between(4, 24)] = 12
    columns: Annotated[int, Between(1, 2)] = 2
    spellings: Annotated[tuple[Spelling, ...], SomeOf(get_args(Spelling))] = ("plain", "upper", "short")
    phrasings: Annotated[int, Between(1, 2)] = 2
    variants: Annotated[int, AtLeast(0)] = 1
    split_by: Literal["question", "schema"] = "question"

    def __post_init__(self) -> None:
        if not all(self._templates(tier) for tier in self.tiers):
            raise ValueError(f"GeneratedQuestions.tables: got 1 with tiers={self.tiers}; need tables=2 for tier 3")

    @property
    def match(self) -> Match:
        """Multisets of rows, in order where the gold query orders them; columns in any order."""
        return Match()

    @property
    def data_hash(self) -> str:
        """A hash of the settings: the questions follow from them."""
        return content_hash(repr(self))

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        instances = draw_instances(
            name="GeneratedQuestions",
            split=split,
            count=count,
            seed=seed,
            propose=lambda rng: self._propose(rng, split),
            content=lambda instance: instance.content,
            split_content=lambda instance: instance.text,
            accept=self._is_usable,
        )
        return [self._task(instance) for instance in instances]

    def schema(self, database: str) -> Schema:
        """The schema of a database.

        Raises:
            ValueError: when `database` is no number.
        """
        return _filled(self, _number(database), 0).schema

    def contents(self, database: str) -> tuple[bytes, ...]:
        """The database that queries read, and its variants.

        Raises:
            ValueError: when `database` is no number.
        """
        seed = _number(database)
        return tuple(_filled(self, seed, variant).serialize() for variant in range(1 + self.variants))

    def _templates(self, tier: int) -> list[Template]:
        return [each for each in TIERS[tier] if self.tables > 1 or each not in TWO_TABLES]

    def _propose(self, rng: random.Random, split: Split) -> QuestionInstance:
        database = rng.randrange(self.databases)
        while self.split_by == "schema" and _split_of_schema(self, database) != split:
            database = rng.randrange(self.databases)
        tier = rng.choice(self.tiers)
        template = rng.choice(self._templates(tier))
        tables = _filled(self, database, 0)
        return QuestionInstance(
            database=database,
            tables=tables,
            tier=tier,
            template=template.__name__,
            question=template(rng, tables),
        )

    def _is_usable(self, instance: QuestionInstance) -> bool:
        """Whether the gold query has a result that no wrong query has."""
        database, question = _opened(self, str(instance.database)), instance.question
        ordered, limits = orders_rows(question.sql), QueryLimits()
        gold = database.run(question.sql, limits)
        if gold.error or gold.more or not _is_informative(gold):
            return False

        def has_same_result(sql: str) -> bool:
            return self.match.equal(gold, database.run(sql, limits), ordered=ordered)

        return all(map(has_same_result, question.equivalent)) and not any(map(has_same_result, question.wrong))

    def _task(self, instance: QuestionInstance) -> Task:
        choice = int(content_hash(instance.content), 16) % self.phrasings
        return instance_task(
            name="sql",
            content=f"{instance.database}\n{instance.content}",
            data={
                "database": str(instance.database),
                "question": instance.question.phrasings[choice],
                "sql": instance.question.sql,
                "hint": "",
                "lookups": [*dict.fromkeys(instance.question.lookups)] if len(self.spellings) > 1 else [],
                "tier": instance.tier,
                "template": instance.template,
            },
        )


def _is_informative(result: QueryResult) -> bool:
    """Whether a result has a value that is neither NULL nor zero."""
    return any(value not in (None, 0) for row in result.rows for value in row)


def _number(database: str) -> int:
    if not database.isdecimal():
        raise ValueError(f"GeneratedQuestions: got the database {database!r}; need a number")
    return int(database)


@lru_cache(maxsize=128)
def _opened(questions: GeneratedQuestions, database: str) -> OpenDatabase:
    """The database that agents read, for the templates' own queries: in this process, which is faster."""
    return OpenDatabase(questions.contents(database)[0])


@lru_cache(maxsize=256)
def _filled(questions: GeneratedQuestions, database: int, variant: int) -> GeneratedTables:
    """A database of the questions, with rows."""
    return fill_tables(_drawn(questions, database), database, rows=questions.rows, variant=variant)


@lru_cache(maxsize=4096)
def _drawn(questions: GeneratedQuestions, database: int) -> GeneratedTables:
    return draw_tables(database, tables=questions.tables, columns=questions.columns, spellings=questions.spellings)


@lru_cache(maxsize=4096)
def _split_of_schema(questions: GeneratedQuestions, database: int) -> Split:
    return split_of(_drawn(questions, database).schema.content)
