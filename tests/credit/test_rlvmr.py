"""RLVMR's advantage: the worked example, the released form, and what is a group."""

import numpy as np
import pytest
from tests.credit.seen import paid, turns_of

from bough.credit import Rlvmr
from bough.tree import Kind, Rewarded, StageError

TAGS = [["planning", "explore", "reflection"], ["planning", "explore"]]


def tagged(tags: list[list[str]], thoughts: list[list[float]], outcomes: list[float]) -> Rewarded:
    """Chains by the tags of their turns, the rewards of these thoughts, and an outcome at the end."""
    given = paid(
        *[[*[0.0] * (len(path) - 1), outcome] for path, outcome in zip(tags, outcomes, strict=True)],
        infos=[[{"thought": tag} for tag in path] for path in tags],
    )
    channel = np.zeros(given.tree.nodes)
    channel[given.tree.kind == Kind.ACTION] = np.concatenate(thoughts)
    return Rewarded(tree=given.tree, channels={**given.channels, "meta_reasoning": channel})


EXAMPLE = tagged(TAGS, [[1, 1, 0], [0, 1]], [10.0, 0.0])


@pytest.mark.parametrize(
    ("rule", "factor", "expected"),
    [
        (Rlvmr(), 1, [0.707107, 0.353553, 0.353553, -0.707107, -0.353553]),
        (Rlvmr(as_released=True), 1, [4.5, 4.0, 4.0, -6.5, -6.0]),
        (Rlvmr(std="none"), 2, [5.5, 5.0, 5.0, -5.5, -5.0]),
    ],
)
def test_worked_example(rule: Rlvmr, factor: float, expected: list[float]) -> None:
    """The last: the released sum, with means over paths and 0 for the only turn of a tag."""
    (found,) = rule([EXAMPLE])
    assert factor * np.concatenate(turns_of(found)) == pytest.approx(expected, abs=2e-5)


def test_turns_are_compared_within_their_tag_alone() -> None:
    """A plan that was paid does not lower a reflection that was not; equal outcomes leave the thoughts."""
    (found,) = Rlvmr(std="none")([tagged([["planning", "reflection"]] * 2, [[1, 0], [1, 1]], [1.0, 1.0])])
    assert turns_of(found) == [[0.0, -0.25], [0.0, 0.25]]


def test_turns_without_a_tag_are_no_group() -> None:
    given = tagged([["", ""], ["", "explore"]], [[-1, 0], [0, 0]], [1.0, 1.0])
    assert [each for path in turns_of(*Rlvmr()([given])) for each in path] == [0.0] * 4
    (released,) = Rlvmr(as_released=True)([given])
    assert turns_of(released)[0][0] == pytest.approx(-2 / 3)


def test_the_blend_weighs_outcome_and_thoughts() -> None:
    (outcome,), (thoughts,) = Rlvmr(blend=1.0)([EXAMPLE]), Rlvmr(blend=0.0)([EXAMPLE])
    assert np.concatenate(turns_of(outcome)) == pytest.approx([*[0.707106] * 3, *[-0.707106] * 2], abs=2e-5)
    assert np.concatenate(turns_of(thoughts)) == pytest.approx([0.707106, 0, 0, -0.707106, 0], abs=2e-5)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(StageError, match=r"Rlvmr.step: got 'meta_reasoning' and the channels \['env'\]"):
        Rlvmr()([paid([1.0])])
    with pytest.raises(ValueError, match=r"Rlvmr.blend: got 2"):
        Rlvmr(blend=2)
