"""Questions to models: the question, its answer with a verdict, its settings, and prompts."""

from bough.ask.answer import Answer, Reply
from bough.ask.asks import Asks, AsksVotes
from bough.ask.prompts import Choice, LabelParser, Lines, NumberParser, Text
from bough.ask.query import Asker, Query

__all__ = [
    "Answer",
    "Asker",
    "Asks",
    "AsksVotes",
    "Choice",
    "LabelParser",
    "Lines",
    "NumberParser",
    "Query",
    "Reply",
    "Text",
]
