"""Annotations of a turn by the parser or the environment, and the number of sampled tokens."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from bough.needs import Need, annotation
from bough.tree import (
    Bools,
    Floats,
    Ints,
    PathView,
    Ternary,
    ToolCall,
    annotation_spans,
    annotations,
    join,
    sum_at,
)
from bough.tree.texts import calls_in

NOWHERE = (0, 0)

ALWAYS = frozenset({"valid", "well_formed"})
"""The columns that mark every sampled turn, with any parser: recognised by the environment, in the format."""


def need_of(mark: str) -> frozenset[Need]:
    """The annotation that a rule needs which reads a mark; empty for a mark that every turn has."""
    return frozenset(() if mark in ALWAYS else (annotation(name_of(mark)),))


def name_of(mark: str) -> str:
    """The annotation of a mark: "call" of "call:search"."""
    return mark.partition(":")[0]


def marked(view: PathView, mark: str) -> Bools:
    """[S] bool: whether a turn has a true annotation `mark`, or a `YES` in the column of that name.

    With a colon in the mark, such as "call:search", the turn must also call the tool after it.
    """
    if mark in ALWAYS:
        return join(view.rewarded, mark)[view.node] == Ternary.YES
    name, _, tool = mark.partition(":")
    entries, which = annotations(view, name)
    if tool:
        entries = [bool(entry) and _calls(info, tool) for entry, info in zip(entries, view.infos[0], strict=True)]
    return np.fromiter(entries, dtype=np.bool_, count=len(entries))[which]


def _calls(info: Mapping[str, object], tool: str) -> bool:
    return any(isinstance(call, ToolCall) and call.name == tool for call in calls_in(info))


def spans(view: PathView, name: str) -> tuple[Ints, Ints]:
    """[S] int64 each: first token and end of the span `name` in a turn, counted from its first; 0 and 0 without one.

    The spans of a turn are those of its last `ACTION` node.
    """
    return all_spans(view, (name,))[name]


def all_spans(view: PathView, names: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
    """Returns the spans of several names, by name."""
    parts, which = annotation_spans(view)
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
