"""Data sets for other libraries: pairs, examples, values, step labels, revisions and conversations."""

from bough.export.conversations import conversation
from bough.export.export import Exported, export
from bough.export.pair_filter import PairFilter
from bough.export.sources import read_message_log

__all__ = ["Exported", "PairFilter", "conversation", "export", "read_message_log"]
