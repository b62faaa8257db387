import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.explore.shapes import (
    ends,
    grown,
    model_grove,
    pieces,
    place_of,
    scores,
    spelling,
    text_of,
    written,
)

from bough.credit import TreePo
from bough.engine import InjectedFault, Request, Scripted
from bough.explore import Segments
from bough.reward import EnvReward
from bough.rollout import Explorer
from bough.tree import Kind, Outcome, Rewarded, TruncatedBy, counted, leaves, path, turns

SMALL = Segments(width=8, divergence=2, tokens=3)


def test_segments_double_until_there_is_no_room() -> None:
    """Twelve tokens in four segments: 2, 4, 8, 8 of them."""
    assert isinstance(SMALL, Explorer)
    tree = grown(place_of(Scripted(script=spelling(11))), SMALL)
    assert ends(tree) == [Outcome.TERMINATED] * 8
    assert [pieces(tree, leaf) for leaf in leaves(tree)] == [[3, 3, 3, 3]] * 8
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    assert len(acts) == 2 + 4 + 8 + 8
    assert sum(len(tree.tokens_of(act)) for act in acts.tolist()) == 3 * 22
    assert SMALL.paths == 8


def test_the_price_of_the_paper() -> None:
    assert sum(min(16, 2**k) for k in range(1, 15)) == 190
    tree = grown(place_of(Scripted(script=spelling(27)), max_tokens=28), Segments(tokens=2))
    assert (tree.kind == Kind.ACTION).sum() == 190
    assert len(counted(tree)) == 16


def test_width_moves_to_those_that_go_on() -> None:
    """What begins with a is over after a segment: the other carries the room of both."""

    def reply(request: Request) -> tuple[int, ...]:
        begun = len(request.prompt_tokens) - len("{go: }{.}")
        first = begun == 0
        return tuple(map(ord, "a" if first and next(calls) == 0 else "b" * (8 - begun)))

    calls = iter(range(100))
    tree = grown(place_of(Scripted(script=reply)), Segments(width=4, divergence=2, tokens=3))
    assert sorted(map(str, (written(tree, leaf) for leaf in leaves(tree)))) == ["a.", *["bbbbbbbb."] * 3]
    acts = tree.kind == Kind.ACTION
    # One of "a", one and then three of the others: min(4 - 1, 2 * (1 + 1)) = 3.
    assert acts.sum() == 2 + 3 + 3


def test_room_is_shared_out_evenly() -> None:
    """Three live paths and room for eight: 3, 3 and 2, the first getting what is left over."""
    explorer = Segments(width=8, divergence=3, tokens=2)
    tree = grown(place_of(Scripted(script=spelling(7))), explorer)
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    second = [int((tree.parent[acts] == act).sum()) for act in acts if tree.parent[act] == 0]
    assert second == [3, 3, 2]


def test_ended_paths_are_taken_up_again_where_a_segment_began() -> None:
    """All end in their first segment: the only beginning is the prompt."""
    tree = grown(place_of(Scripted(script=spelling(1))), Segments(width=7, divergence=2, tokens=3))
    assert ends(tree) == [Outcome.TERMINATED] * 7
    assert tree.parent[tree.kind == Kind.ACTION].tolist() == [0] * 7
    # Two segments each: some are taken up at the second.
    depths: set[tuple[int, ...]] = set()
    for seed in range(20):
        tree = grown(place_of(Scripted(script=spelling(3))), Segments(width=9, divergence=2, tokens=2), seed=seed)
        assert len(counted(tree)) == 9
        acts = tree.kind == Kind.ACTION
        depths.add(tuple(int((tree.parent[acts] == node).sum()) for node in (0, 1)))
    assert len(depths) > 3


def test_those_cut_off_are_taken_up_first() -> None:
    """One path ends, the next repeats itself: the third goes on from somewhere in the second."""
    explorer = Segments(width=3, divergence=1, tokens=4, loop_tokens=2)
    shared = 0
    for seed in range(20):
        begun = iter("baa")

        def reply(request: Request, begun: Iterator[str] = begun) -> tuple[int, ...]:
            letter = text_of(request)[:1] or next(begun)
            return tuple(map(ord, letter * 40 if letter == "a" else letter))

        tree = grown(place_of(Scripted(script=reply), max_tokens=60), explorer, seed=seed)
        first, *looping = (int(leaf) for leaf in leaves(tree))
        assert [written(tree, leaf) for leaf in (first, *looping)] == ["b.", "a" * 12, "a" * 12]
        assert tree.truncated_by[looping].tolist() == [TruncatedBy.REPETITION] * 2
        assert ends(tree) == [Outcome.TERMINATED, *[Outcome.TRUNCATED] * 2]
        shared += len(set(path(tree, looping[0]).tolist()) & set(path(tree, looping[1]).tolist())) > 1
    # Two of the three beginnings are not the prompt.
    assert 7 <= shared <= 19


def test_a_path_goes_on_through_turns() -> None:
    """Turns of five tokens, segments of three: 3 and 2, and a branch at every end of either."""
    tree = grown(place_of(Scripted(script=spelling(4)), turns=12), SMALL)
    assert ends(tree) == [Outcome.TERMINATED] * 8
    for leaf in leaves(tree):
        assert pieces(tree, leaf) == [3, 2] * 3
        assert written(tree, leaf).count(".") == 3
    assert turns(tree)[leaves(tree)].tolist() == [3] * 8
    below = np.bincount(tree.parent[1:][tree.kind[1:] == Kind.ACTION], minlength=tree.nodes)
    assert {Kind(int(tree.kind[node])) for node in np.flatnonzero(below > 1)} >= {Kind.PROMPT, Kind.ACTION}


def test_what_fails_is_tried_again_and_a_fault_for_good_ends_it() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.3 else spelling(8)(request)

    for seed in range(5):
        place = place_of(Scripted(script=reply))  # type: ignore[arg-type]
        tree = grown(place, Segments(width=6, tokens=3, retries=40), seed=seed)
        assert len(counted(tree)) == 6
        assert Outcome.FAILED in ends(tree)
    dead = place_of(Scripted(script=lambda _: InjectedFault.FAULT))
    assert ends(grown(dead, Segments(width=4, retries=1))) == [Outcome.FAILED] * 4


def test_what_failed_in_the_middle_of_an_action_is_no_path() -> None:
    """Every second segment fails for good: nothing counts, and nothing is said to have been cut short."""

    def reply(request: Request) -> object:
        return InjectedFault.FAULT if text_of(request) else spelling(8)(request)

    place = place_of(Scripted(script=reply))  # type: ignore[arg-type]
    tree = grown(place, Segments(width=4, tokens=3, retries=1))
    assert set(ends(tree)) == {Outcome.FAILED}
    assert len(counted(tree)) == 0


def test_a_model_reads_what_the_tree_says() -> None:
    place = model_grove()
    tree = grown(place, Segments(width=6, divergence=2, tokens=2))
    assert len(counted(tree)) == 6
    said = scores(place, tree)
    assert len(said) > 20
    np.testing.assert_allclose(*zip(*said, strict=True), atol=1e-6)


def test_credit_takes_segments_for_turns() -> None:
    tree = grown(place_of(Scripted(script=spelling(11))), SMALL)
    (credited,) = TreePo()([Rewarded(tree=tree, channels=EnvReward()([tree])[0])])
    assert np.isfinite(credited.advantage[tree.sampled]).all()


def test_ranges() -> None:
    for name in ("width", "divergence", "tokens", "loop_tokens", "loop_times", "retries"):
        with pytest.raises(ValueError, match=rf"Segments\.{name}: got -1; need at least"):
            Segments(**{name: -1})
