"""Data sets for other libraries: pairs, examples, values, step labels and revisions from trees."""

from bough.export.export import Mined, mine
from bough.export.pair_filter import Apart

__all__ = ["Apart", "Mined", "mine"]
