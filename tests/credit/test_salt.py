import numpy as np
import pytest
from tests.credit.grown import ended, flat, path_index

from bough.credit import Grpo, Salt, rloo
from bough.tree import path_view

PLAIN = Grpo(std="none")
PAID = [ended(2, 2), ended(0, 2), ended(0, 2), ended(2, 2)]
"""Against their mean 1: 1, -1, -1, 1."""


def test_worked_example() -> None:
    """An edge shared by 1, -1, -1 has -1/3 for all three."""
    paths = [("s", "t"), ("s", "t"), ("s", "t"), ("s", "u")]
    given = path_index(*paths, paid=PAID, ends=["e1", "e2", "e3", "e4"])
    advantage = flat(*Salt(base=PLAIN)([given]))
    assert advantage[0::2] == pytest.approx([-1 / 3, -1 / 3, -1 / 3, 1], abs=2e-5)
    assert advantage[1::2] == pytest.approx([1, -1, -1, 1], abs=2e-5)


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({}, True),
        ({"words": [[4, 4], [5, 4]]}, False),
        ({"paths": [("s", "t"), ("s", "u")]}, False),
        ({"paths": [("s", "t"), ("r", "t")]}, False),
        ({"paths": [("s", None), ("s", None)]}, False),
    ],
)
def test_an_edge_is_state_action_and_next_state(change: dict[str, list[object]], shared: bool) -> None:
    paths = change.get("paths", [("s", "t"), ("s", "t")])
    given = path_index(*paths, paid=PAID[:2], words=change.get("words", ()), ends=["e1", "e2"])  # type: ignore[arg-type]
    first, _, other, _ = flat(*Salt(base=PLAIN)([given]))
    assert [first, other] == ([0.0, 0.0] if shared else [1.0, -1.0])


def test_the_last_edge_ends_in_the_state_of_the_leaf() -> None:
    for ends, shared in ((["e", "e"], True), (["e", "f"], False), ([None, None], False)):
        given = path_index(("s",), ("s",), paid=[[2.0], [0.0]], ends=ends)
        assert flat(*Salt(base=PLAIN)([given])) == ([0.0, 0.0] if shared else [1.0, -1.0])


def test_history_must_be_the_same_too() -> None:
    paths = [("p", "s", "t"), ("q", "s", "t")]
    given = path_index(*paths, paid=[ended(2, 3), ended(0, 3)], ends=["e", "e"])
    assert flat(*Salt(base=PLAIN)([given])) == [1, 0, 0, -1, 0, 0]
    assert flat(*Salt(base=PLAIN, history=1)([given])) == [1, 1, 0, -1, -1, 0]
    assert flat(*Salt(base=PLAIN, history=2)([given])) == [1, 1, 1, -1, -1, -1]


def test_a_path_that_goes_in_circles_counts_once() -> None:
    paths = [("s", "s", "s"), ("s", "s")]
    given = path_index(*paths, paid=[ended(2, 3), ended(0, 2)], ends=["e", "s"])
    # s to s, twice by the first and twice by the second: the mean of 1 and -1.
    assert flat(*Salt(base=PLAIN)([given])) == [0, 0, 1, 0, 0]


def test_tasks_are_graphs_of_their_own() -> None:
    trees = [
        path_index(("s",), ("s",), paid=[[2.0], [0.0]], ends=ends, task=t) for t, ends in (("a", "ef"), ("b", "ef"))
    ]
    assert flat(*Salt(base=PLAIN)(trees)) == [1, -1, 1, -1]


def test_credit_is_moved_and_not_made() -> None:
    """Averaging over an edge keeps the sum over its members, when no path takes it twice."""
    paths = [("s", "t"), ("s", "t"), ("s", "u"), ("s", "t")]
    given = path_index(*paths, paid=PAID, ends=list("eeef"))
    advantage = np.asarray(flat(*Salt(base=rloo())([given])))
    view = path_view([given])
    for turn in (0, 1):
        assert advantage[view.turn == turn].sum() == pytest.approx(0, abs=1e-6)


def test_ranges() -> None:
    with pytest.raises(ValueError, match=r"Salt.history: got -1; need 0 or more"):
        Salt(history=-1)
