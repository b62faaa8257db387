"""Comparisons: methods, worlds and seeds at an equal budget, with intervals and corrected differences.

The package is also a function, `bough.compare(["grpo", "gigpo"], on="sokoban")`: see `bough.api`.
"""

from bough.compare.cells import Cell, Pair
from bough.compare.comparison import Comparison, Reading, compare_runs
from bough.compare.contestants import Contestant, contestants
from bough.compare.curve import Budget, Curve, Measure, read_curve
from bough.compare.files import record, rows, write_parquet
from bough.compare.grid import Grid, GridFolder
from bough.compare.statistics import Difference, bootstrap_interval, difference, holm, improvement
from bough.lazy import make_callable

__all__ = [
    "Budget",
    "Cell",
    "Comparison",
    "Contestant",
    "Curve",
    "Difference",
    "Grid",
    "GridFolder",
    "Measure",
    "Pair",
    "Reading",
    "bootstrap_interval",
    "compare_runs",
    "contestants",
    "difference",
    "holm",
    "improvement",
    "read_curve",
    "record",
    "rows",
    "write_parquet",
]

make_callable(__name__)
