"""Invariant 4: a turn that was written in pieces is one turn, for every credit rule and for the path view."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.trees import (
    ACTION,
    OBSERVATION,
    PROMPT,
    N,
    build,
    dressed,
    each_seed,
    in_pieces,
    random_tree,
    rewarded,
    seeds,
    sides,
)

from bough.batch import pack
from bough.credit import Credit, Gigpo, Ipa, SegmentPo, TreePo, TreePs, TreeRl, TreeRpo
from bough.critics.replay_buffer import turns_of
from bough.needs import Need, needs_of
from bough.tree import Outcome, Rewarded, begins_turn, path_view, turn_start, turns
from bough.view.branch import branches
from rules import rules

SEGMENTS = {
    "TreePo": "its unit is the segment, of which an answer has many: a path is compared once at each `ACTION` node",
}
"""The rules whose credit may differ between a turn in pieces and a whole one, and why."""

CUT = {name: rule for name, rule in rules().items() if name not in SEGMENTS}
every_rule = pytest.mark.parametrize("rule", CUT.values(), ids=CUT)
DONE = Outcome.TERMINATED


@lru_cache(maxsize=128)
def cut(needs: frozenset[Need], seed: int) -> tuple[list[Rewarded], list[Rewarded]]:
    """Four trees of three tasks, whole and with their turns in pieces."""
    rng = np.random.default_rng(seed)
    whole = [dressed(random_tree(rng, task=task), rng, needs) for task in ("a", "b", "c", "b")]
    return whole, [in_pieces(each, rng) for each in whole]


@every_rule
@each_seed
def test_the_credit_of_tokens_is_that_of_the_uncut_tree(rule: Credit, seed: int) -> None:
    whole, pieces = cut(frozenset(needs_of(rule)), seed)
    for one, other in zip(rule(whole), rule(pieces), strict=True):
        for mine, theirs in zip(sides(one), sides(other), strict=True):
            assert np.allclose(mine, theirs, rtol=1e-6, atol=1e-6)
        assert one.value_targets.keys() == other.value_targets.keys()
        for name, goal in one.value_targets.items():
            assert np.allclose(goal, other.value_targets[name], rtol=1e-6, atol=1e-6, equal_nan=True)
        turns_of_one, turns_of_other = one.turn_advantage, other.turn_advantage
        assert (turns_of_one is None) == (turns_of_other is None)
        if turns_of_one is not None and turns_of_other is not None:
            assert np.allclose(turns_of_one, turns_of_other, rtol=1e-6, atol=1e-6)


def test_segments_are_treepos_unit() -> None:
    """Of two paths that part after a turn, one more segment before the fork is one more comparison."""
    short = N(parent=0, kind=ACTION, tokens=(4, 5)), N(parent=1, kind=OBSERVATION)
    long = N(parent=0, kind=ACTION, tokens=(4,)), N(parent=1, kind=ACTION, tokens=(5,)), N(parent=2, kind=OBSERVATION)
    found = []
    for stem in (short, long):
        at = len(stem)
        ends = [N(parent=at, kind=ACTION, env_reward=paid, outcome=DONE) for paid in (1.0, 0.0)]
        tree = build(N(parent=-1, kind=PROMPT), *stem, *ends, N(parent=0, kind=ACTION, outcome=DONE))
        (credited,) = TreePo(whiten=False)([rewarded(tree)])
        found.append(float(credited.advantage[tree.span[at + 1]]))
    # At the prompt 2/3; after the stem 1/2, with two segments twice.
    assert found == pytest.approx([(2 / 3 + 1 / 2) / 2, (2 / 3 + 1 / 2 + 1 / 2) / 3])


@settings(max_examples=20)
@given(rng=seeds())
def test_the_path_view_is_that_of_the_uncut_tree(rng: np.random.Generator) -> None:
    whole = dressed(random_tree(rng), rng)
    pieces = in_pieces(whole, rng)
    one, other = path_view([whole]), path_view([pieces])
    for name in ("start", "path", "reward", "key", "returns", "tokens", "turn"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.path_tokens.token, other.path_tokens.token)
    assert np.array_equal(one.path_tokens.step, other.path_tokens.step)
    batches = [pack([Ipa()([each])[0]], paths=True) for each in (whole, pieces)]
    assert torch.equal(batches[0].turn, batches[1].turn)
    views = [batch.path_index for batch in batches]
    assert views[0] is not None
    assert views[1] is not None
    for name in ("trained", "path", "turn", "advantage", "path_of_turn", "end"):
        assert torch.equal(getattr(views[0], name), getattr(views[1], name)), name
    for name in ("context_id", "response_id"):
        same = [ids[:, None] == ids[None] for ids in (getattr(views[0], name), getattr(views[1], name))]
        assert torch.equal(*same), name


@settings(max_examples=10)
@given(rng=seeds())
def test_turns_are_shown_and_remembered_whole(rng: np.random.Generator) -> None:
    whole = dressed(random_tree(rng), rng)
    pieces = in_pieces(whole, rng)
    one, other = ([turn for _, turn in turns_of(each)] for each in (whole, pieces))
    for mine, theirs in zip(one, other, strict=True):
        assert np.array_equal(mine.text, theirs.text)
        assert np.array_equal(mine.after, theirs.after)
        assert (mine.read, mine.reward, mine.goes_on) == (theirs.read, theirs.reward, theirs.goes_on)
    shown = [branches(Ipa()([each])[0]) for each in (whole, pieces)]
    assert repr(shown[0]) == repr(shown[1])


def test_one_discount_and_one_state() -> None:
    """Two paths of two turns that begin in one state and meet again; one wrote its first turn in three pieces."""
    nodes = [N(parent=-1, kind=PROMPT, state_key=7)]
    for pieces, paid in ((3, 1.0), (1, 0.0)):
        place = 0
        for number in range(pieces):
            nodes.append(N(parent=place, kind=ACTION, tokens=(4 + number,)))
            place = len(nodes) - 1
        nodes.append(N(parent=place, kind=OBSERVATION, state_key=8))
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=(9,), env_reward=paid, outcome=DONE))
    tree = build(*nodes)
    view = path_view([rewarded(tree)])
    assert view.key.tolist() == [7, 8, 7, 8]
    assert view.first.tolist() == [1, 5, 6, 8]
    assert view.node.tolist() == [3, 5, 6, 8]
    assert turns(tree).tolist() == [0, 1, 1, 1, 1, 2, 1, 1, 2]
    assert np.flatnonzero(begins_turn(tree)).tolist() == [1, 5, 6, 8]
    assert turn_start(tree).tolist() == [0, 1, 1, 1, 4, 5, 6, 7, 8]
    (ipa,) = Ipa(discount=0.5)([rewarded(tree)])
    assert ipa.advantage[1:].tolist() == [0.5, 0.5, 0.5, 0, 1.0, 0, 0, 0]
    (gigpo,) = Gigpo(discount=0.5, norm="mean")([rewarded(tree)])
    # 0.5 by the outcome; by the states 0.5 * 0.5 in the first, 0.5 in the second.
    assert gigpo.advantage[1:].tolist() == [0.75, 0.75, 0.75, 0, 1.0, -0.75, 0, -1.0]


FORK_INSIDE = build(
    N(parent=-1, kind=PROMPT),
    N(parent=0, kind=ACTION, tokens=(4, 5)),
    N(parent=1, kind=ACTION, tokens=(6,), env_reward=1.0, outcome=DONE),
    N(parent=1, kind=ACTION, tokens=(7, 8), outcome=DONE),
    N(parent=1, kind=ACTION, tokens=(9,), outcome=DONE),
    N(parent=0, kind=ACTION, tokens=(4, 5, 6), env_reward=1.0, outcome=DONE),
)
"""TreeRL's example inside one turn: an answer that was forked after two tokens, and another answer."""


def test_two_answers_that_part_inside_are_two_turns_of_one_place() -> None:
    view = path_view([rewarded(FORK_INSIDE)])
    assert view.turns.tolist() == [1, 1, 1, 1]
    assert view.place.tolist() == [0, 0, 0, 0]
    assert view.piece.tolist() == [1, 2, 1, 3, 1, 4, 5]
    assert view.piece_step.tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert view.by_fork.node.tolist() == [1, 2, 1, 3, 1, 4, 5]
    assert view.by_fork.place.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert view.by_fork.reward.tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert view.by_fork.turns.tolist() == [2, 2, 2, 1]
    batch = pack(TreeRl(weight="none")([rewarded(FORK_INSIDE)]), paths=True)
    assert batch.path_index is not None
    assert len(set(batch.path_index.context_id.tolist())) == 1
    first, *others, last = batch.path_index.response_id.tolist()
    assert first == last, "the same words, once in pieces and once whole"
    assert len({first, *others}) == 3


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (TreeRl(weight="none"), [-1 / 3, 7 / 6, -5 / 6, -5 / 6, 1]),
        (TreePs(), [-1 / 6, 2 / 3, -1 / 3, -1 / 3, 1 / 2]),
        (SegmentPo(certain=1.0), [-1 / 6, 2 / 3, -1 / 3, -1 / 3, 1 / 2]),
        (TreeRpo(ddof=0), [-1, 2**0.5, -(0.5**0.5), -(0.5**0.5), 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rules_by_value_take_the_parts_of_a_forked_turn_for_nodes(rule: Credit, expected: list[float]) -> None:
    (credited,) = rule([rewarded(FORK_INSIDE)])
    first = FORK_INSIDE.span[1:-1]
    assert credited.advantage[first] == pytest.approx(expected, abs=2e-5)
    assert not (credited.positive * credited.negative).any()
