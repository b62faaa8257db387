"""Text-to-SQL: databases, questions, safe execution, and comparison of results."""

from bough.env.text_to_sql.folders import BirdFolder, SpiderFolder
from bough.env.text_to_sql.generated import GeneratedQuestions
from bough.env.text_to_sql.match import Match
from bough.env.text_to_sql.partial_credit import PartialCredit
from bough.env.text_to_sql.query import QueryLimits, QueryResult
from bough.env.text_to_sql.questions import SqlSource
from bough.env.text_to_sql.read_only import ReadOnlyDatabase

__all__ = [
    "BirdFolder",
    "GeneratedQuestions",
    "Match",
    "PartialCredit",
    "QueryLimits",
    "QueryResult",
    "ReadOnlyDatabase",
    "SpiderFolder",
    "SqlSource",
]
