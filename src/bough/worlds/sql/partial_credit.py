"""Partial credit for queries that are not right."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from bough.env.sqlite.query import QueryResult
from bough.worlds.sql.match import Match
from bough.worlds.sql.schema import Schema
from bough.worlds.sql.syntax import component_recall, similarity


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialCredit:
    """Partial credit: the maximum reward of each measure. A right answer always has the reward 1.

    The measures of a wrong answer are those of partial rewards for text-to-SQL (arXiv 2503.23157), computed from the
    execution. `progress` rewards queries before the answer, as the exploration reward of ReEx-SQL (arXiv 2505.12768)
    does. Its measure is the components of LearNAT (arXiv 2504.02327).

    Attributes:
        executes: Reward of an answer that executes.
        columns: Factor on the Jaccard overlap of the columns that answer and gold query read.
        rows: Factor on the F1 of the rows of the two results.
        syntax: Factor on the similarity of the syntax trees. Needs the package sqlglot.
        progress: Factor on the recall of the gold query's components by the queries so far, paid during the episode.
            Needs the package sqlglot.

    Raises:
        ValueError: when an amount is negative, or a wrong answer could pay 1 or more.
    """

    executes: float = 0.1
    columns: float = 0.1
    rows: float = 0.2
    syntax: float = 0.0
    progress: float = 0.0

    def __post_init__(self) -> None:
        amounts = {each.name: float(getattr(self, each.name)) for each in fields(self)}
        if min(amounts.values()) < 0 or sum(amounts.values()) >= 1:
            raise ValueError(f"PartialCredit: got {amounts}; need amounts from 0 whose sum is below 1")

    @property
    def needs_syntax(self) -> bool:
        """Whether the package sqlglot is needed."""
        return self.syntax > 0 or self.progress > 0

    def of_answer(
        self, sql: str, result: QueryResult, gold_sql: str, gold: QueryResult, *, match: Match, schema: Schema
    ) -> float:
        """The reward of a wrong answer, below 1."""
        if result.error:
            return 0.0
        both, either = result.reads & gold.reads, result.reads | gold.reads
        credit = self.executes + self.rows * match.overlap(gold, result)
        credit += self.columns * (len(both) / len(either) if either else 0.0)
        return credit + (self.syntax * similarity(sql, gold_sql, schema) if self.syntax else 0.0)

    def of_queries(self, queries: Sequence[str], gold_sql: str, schema: Schema) -> float:
        """The reward of all queries of an episode so far."""
        return self.progress * component_recall(queries, gold_sql, schema) if self.progress else 0.0
