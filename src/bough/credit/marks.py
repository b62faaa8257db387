"""Marks of a turn that a parser or the environment put into its info, and the number of sampled tokens."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias, cast

import numpy as np

from bough.tree import Bools, Floats, Ints, PathView, action_info, sum_at
from bough.tree.needs import Need, annotation

Parts: TypeAlias = Mapping[str, tuple[int, int]]

NOWHERE = (0, 0)

NONE: Parts = {}

ALWAYS = frozenset({"valid", "well_formed"})
"""Marks of every sampled turn, with any parser: recognised by the environment, in the required format."""


def need_of(mark: str) -> frozenset[Need]:
    """The annotation that a rule needs which reads a mark; empty for a mark that every turn has."""
    return frozenset(() if mark in ALWAYS else (annotation(mark),))


def marked(view: PathView, mark: str) -> Bools:
    """[S] bool: whether the info of a turn has a true entry under `mark`."""
    entries, which = action_info(view, mark)
    return np.fromiter(entries, dtype=np.bool_, count=len(entries))[which]


def spans(view: PathView, name: str) -> tuple[Ints, Ints]:
    """[S] int64 each: first token and end of the span `name` in a turn, counted from its first; 0 and 0 without one.

    A parser puts spans into the info of the last `ACTION` node of a turn, under "spans": `{"subgoal": [0, 5]}`.
    """
    return all_spans(view, (name,))[name]


def all_spans(view: PathView, names: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
    """Returns the spans of several names, by name."""
    entries, which = action_info(view, "spans", NONE)
    parts = cast("list[Parts]", entries)
    found: dict[str, tuple[Ints, Ints]] = {}
    for name in names:
        ends = chain.from_iterable([part.get(name, NOWHERE) for part in parts])
        both = np.fromiter(ends, dtype=np.int64, count=2 * len(parts)).reshape(-1, 2)
        found[name] = both[which, 0], both[which, 1]
    return found


def written(view: PathView) -> Floats:
    """[S] float64: number of tokens of a turn that the policy sampled."""
    sampled = np.concatenate([[0], np.cumsum(view.sampled)])
    end = np.cumsum(view.lengths)
    of_node = sampled[end] - sampled[end - view.lengths]
    return sum_at(view.piece_step, of_node[view.piece], len(view.path))
