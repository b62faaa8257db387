"""Questions to models: the question, its answer with a verdict, its settings, and prompts."""

from bough.ask.answer import Answer, Reply
from bough.ask.prompts import Choice, LabelParser, Lines, NumberParser, Text
from bough.ask.query import Query, QueryClient
from bough.ask.query_settings import QuerySettings, VoteSettings

__all__ = [
    "Answer",
    "QueryClient",
    "QuerySettings",
    "VoteSettings",
    "Choice",
    "LabelParser",
    "Lines",
    "NumberParser",
    "Query",
    "Reply",
    "Text",
]
