"""The metrics of a run as a table."""

import math
from html import escape

from bough.view.numbers import short
from bough.view.progress import PLAIN
from bough.view.rising_rewards import Value

SHOWN = ("step", "phase", "train/success", "heldout/success", "heldout/reward", *PLAIN)
"""Columns displayed in a notebook; a run has dozens."""

SHOWN_ROWS = 20
"""Longer tables are displayed without their middle rows."""


class MetricTable(list[dict[str, Value]]):
    """One row a step, each a mapping from the metric's name to its value; nan where a value is not finite.

    `pandas.DataFrame(table)` converts it. A notebook displays the main columns.
    """

    @property
    def columns(self) -> list[str]:
        """The names of all metrics, in order of first occurrence."""
        return list(dict.fromkeys(name for row in self for name in row))

    def column(self, name: str) -> list[Value]:
        """The values of a metric, one a row; nan in rows without it.

        Raises:
            KeyError: when no row has it.
        """
        if not any(name in row for row in self):
            raise KeyError(f"got {name!r}; need one of {', '.join(self.columns)}")
        return [row.get(name, math.nan) for row in self]

    def __repr__(self) -> str:
        return f"MetricTable({len(self)} rows, {len(self.columns)} columns)"

    def to_html(self) -> str:
        """The main columns as an HTML table; the first and last rows of a long one."""
        there = self.columns
        names = [name for name in SHOWN if name in there]
        half = SHOWN_ROWS // 2
        rows = ["".join(f"<td>{escape(_cell(row.get(name, '')))}</td>" for name in names) for row in self]
        if len(rows) > SHOWN_ROWS:
            rows = [*rows[:half], "<td>...</td>" * len(names), *rows[-half:]]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        counts = f"{len(self)} rows; {len(names)} of {len(there)} columns"
        return f"<table><caption>{counts}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    _repr_html_ = to_html


def _cell(value: Value) -> str:
    return value if isinstance(value, str) else short(value)
