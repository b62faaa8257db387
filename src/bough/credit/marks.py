"""What a turn carries: the marks that a parser or the environment put into its info, and how much the policy wrote."""

from collections.abc import Mapping
from itertools import chain
from typing import TypeAlias, cast

import numpy as np

from bough.tree import Bools, Floats, Ints, Steps

Parts: TypeAlias = Mapping[str, tuple[int, int]]

NOWHERE = (0, 0)

ALWAYS = frozenset({"valid", "well_formed"})
"""Marks that every sampled turn has, whatever the parser: understood by the environment, written in the agreed form."""


def need_of(mark: str) -> frozenset[str]:
    """What a rule needs that reads a mark."""
    return frozenset(() if mark in ALWAYS else (f"mark.{mark}",))


def marked(view: Steps, mark: str) -> Bools:
    """[S] bool: whether the info of a turn's `ACTION` node has something true under `mark`."""
    return np.fromiter(map(bool, _said(view, mark)), dtype=np.bool_)[view.node]


def spans(view: Steps, name: str) -> tuple[Ints, Ints]:
    """[S] int64 each: first token and end of the span `name` in a turn, counted in its node; 0 and 0 without one.

    A parser puts spans into the info of an `ACTION` node, under "spans": `{"subgoal": [0, 5]}`.
    """
    said = cast("list[Parts | None]", _said(view, "spans"))
    ends = chain.from_iterable(NOWHERE if parts is None else parts.get(name, NOWHERE) for parts in said)
    both = np.fromiter(ends, dtype=np.int64, count=2 * len(said)).reshape(-1, 2)[view.node]
    return both[:, 0], both[:, 1]


def written(view: Steps) -> Floats:
    """[S] float64: how many tokens of a turn the policy sampled."""
    sampled = np.concatenate([[0], np.cumsum(~np.isnan(view.of_tokens("logprob")))])
    end = np.cumsum(view.lengths)
    return (sampled[end] - sampled[end - view.lengths])[view.node].astype(np.float64)


def _said(view: Steps, name: str) -> list[object]:
    """[N]: what the infos of the nodes of the batch say under `name`, None where nothing."""
    return [info.get(name) for each in view.rewarded for info in each.tree.info]
