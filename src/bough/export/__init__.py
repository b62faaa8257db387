"""Data sets for other libraries: pairs, examples, values, step labels and revisions from trees."""

from bough.export.export import Exported, export
from bough.export.pair_filter import PairFilter

__all__ = ["PairFilter", "Exported", "export"]
