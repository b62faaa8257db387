"""A judge of one seat: which turns it judges, and where its values stand in the tree of all seats."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.appraise.test_appraisers import appraised, asker, says, trees
from tests.env.nim import FIRST, SECOND
from tests.rollout.test_seats import nim, tree_of

from bough.appraise import OfSeat, step_critic
from bough.explore import Chains
from bough.tree import Kind, Verdict, seat_nodes, seat_view


def test_only_the_turns_of_the_seat_are_judged_at_their_nodes(tmp_path: Path) -> None:
    tree = tree_of(nim()[0], Chains(n=3))
    critic = step_critic(role="judge")
    ask, _ = asker(lambda _: says("good"), tmp_path)
    (judged,) = appraised([tree], ask, OfSeat(appraiser=critic, seat=FIRST))
    nodes = np.flatnonzero(judged.appraisals["critic"].verdict == Verdict.OK)
    acts = tree.kind == Kind.ACTION
    own = np.flatnonzero(acts & (tree.seat == [each.name for each in tree.seats].index(FIRST)))
    assert nodes.tolist() == own.tolist()
    assert len(own) < acts.sum()
    (whole,) = appraised([tree], ask, critic)
    assert (whole.appraisals["critic"].verdict == Verdict.OK).sum() == acts.sum()
    view = seat_view(tree, FIRST)
    assert view is not None
    assert len(seat_nodes(tree, FIRST)) == view.nodes


def test_a_tree_without_seats_is_judged_as_it_is(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("good"), tmp_path)
    (judged,) = appraised(trees(), ask, OfSeat(appraiser=step_critic(role="judge"), seat="agent"))
    assert (judged.appraisals["critic"].verdict == Verdict.OK).sum() == (judged.kind == Kind.ACTION).sum()


def test_a_seat_that_does_not_act_has_a_column_without_values(tmp_path: Path) -> None:
    tree = tree_of(nim()[0], Chains(n=1))
    silent = replace(tree, seat=np.full_like(tree.seat, [each.name for each in tree.seats].index(FIRST)))
    ask, _ = asker(lambda _: says("good"), tmp_path)
    (judged,) = appraised([silent], ask, OfSeat(appraiser=step_critic(role="judge"), seat=SECOND))
    assert not (judged.appraisals["critic"].verdict == Verdict.OK).any()
