"""Counts of actions: all, cut off, invalid."""

import random

import numpy as np
from tests.explore.shapes import place_of
from tests.explore.stage import grow, runner, scripted

from bough.engine import Scripted
from bough.explore import Chains, Segments
from bough.tree import ActionCounts, Ternary, count_actions


def test_cut_and_invalid_actions_are_counted() -> None:
    """Answers of two letters where two tokens are allowed: the stop token has no place, and the world knows neither."""
    place = runner(scripted(lambda luck: luck.choice(["a", "zz"])), max_tokens=2)
    trees = grow(place, Chains(n=20)).trees
    written = [tree.info[node]["text"] for tree in trees for node in np.flatnonzero(tree.cut_off != Ternary.UNKNOWN)]
    counts = count_actions(trees)
    assert counts == ActionCounts(actions=len(written), cut=written.count("zz"), invalid=written.count("zz"))
    assert 0 < counts.cut < counts.actions
    assert counts.shares == {
        "cut_actions": counts.cut / counts.actions,
        "valid_actions": 1 - counts.cut / counts.actions,
    }


def test_a_segment_is_not_an_action_that_was_cut_off() -> None:
    engine = Scripted(script=lambda request: tuple(map(ord, random.Random(request.seed).choice(["xyz", "xyzxyz"]))))
    trees = grow(place_of(engine, max_tokens=60), Segments(width=4, tokens=2)).trees
    assert any(np.any(tree.cut_off == Ternary.YES) for tree in trees)
    assert count_actions(trees).cut == 0


def test_without_actions_there_are_no_shares() -> None:
    assert count_actions(()).shares == {}
