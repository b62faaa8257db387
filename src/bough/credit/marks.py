"""What a turn carries: the marks that a parser or the environment put into its info, and how much the policy wrote."""

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np

from bough.tree import Bools, Floats, Ints, Steps

Parts: TypeAlias = Mapping[str, tuple[int, int]]

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
    own = [(node, parts[name]) for node, parts in enumerate(said) if parts and name in parts]
    both = np.zeros((2, len(said)), dtype=np.int64)
    both[:, [node for node, _ in own]] = np.asarray([span for _, span in own], dtype=np.int64).reshape(-1, 2).T
    return both[0, view.node], both[1, view.node]


def written(view: Steps) -> Floats:
    """[S] float64: how many tokens of a turn the policy sampled."""
    sampled = np.concatenate([[0], np.cumsum(~np.isnan(view.of_tokens("logprob")))])
    end = np.cumsum(view.lengths)
    return (sampled[end] - sampled[end - view.lengths])[view.node].astype(np.float64)


def _said(view: Steps, name: str) -> list[object]:
    """[N]: what the infos of the nodes of the batch say under `name`, None where nothing."""
    return [info.get(name) for each in view.rewarded for info in each.tree.info]
