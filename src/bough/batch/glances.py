"""The runs of a stretch as calls of a kernel that knows one run of queries, one of keys, and whether it is causal."""

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from bough.batch.stretch import Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Queries that look at keys, all in one call: the run of queries, the run of keys.

    Where `causal`, both begin at the same token, and a query sees the keys up to its own: all of them, once it lies
    behind them.

    Attributes:
        queries: (first, last), among the stretch's tokens.
        keys: (first, last), among the past and then the stretch's tokens.
        causal: Whether the keys are the queries' own tokens.
        rows: So many equal runs, laid end to end, each of which looks at itself alone.
        column: Which part of what its queries see; no query has two of one column, and each has part 0.
    """

    queries: tuple[int, int]
    keys: tuple[int, int]
    causal: bool
    rows: int
    column: int


def glances(stretch: Stretch) -> tuple[Glance, ...]:
    """Together, every pair of a query and a key that it sees, once; column by column.

    Each is in the first column in which none of its queries has a part yet.
    """
    past = len(stretch.past)
    parts = np.zeros(len(stretch), dtype=np.int64)
    found: list[Glance] = []
    # Where a text begins there is a first part, as elsewhere there is before the branch.
    runs = [(*run, bool(stretch.position[run[2]] == 0)) for run in stretch.runs.tolist()]
    for (lonely, *_), same in groupby(runs, lambda run: (run[1] + past == run[3], run[3] - run[2], run[4])):
        for some in [list(same)] if lonely else [[run] for run in same]:
            (query, _, key, _, _), (_, reach, _, stop, _) = some[0], some[-1]
            each = Glance(queries=(query, reach), keys=(key, stop), causal=key >= past, rows=len(some), column=0)
            own = parts[query:reach]
            column = int(own.max())
            own[:] = column + 1
            found.append(replace(each, column=column))
    return tuple(sorted(found, key=lambda glance: glance.column))
