"""Data curation: detours, easy paths and repeated turns get no advantage."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Filtered, RestMcts, UsefulTurns
from bough.tree import Outcome, Rewarded


def path(states: str, actions: str | None = None, *, success: bool = True) -> Rewarded:
    """A path through states, one letter each; a turn's token is its letter in `actions`; "." is a state without key."""
    actions = actions or "".join(chr(ord("m") + place) for place in range(len(states) - 1))
    keys = [0 if letter == "." else ord(letter) for letter in states]
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,), state_key=keys[0])]
    for action, key in zip(actions, keys[1:], strict=True):
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=(ord(action),)))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(3,), state_key=key))
    nodes[-1] = N(parent=len(nodes) - 2, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=success)
    return rewarded(build(*nodes))


def kept(rule: UsefulTurns, *trees: Rewarded) -> list[list[float]]:
    return [each.path_advantage.tolist() for each in rule(list(trees))]


def test_the_example_of_the_docstring() -> None:
    assert kept(UsefulTurns(), path("ABCBDE")) == [[1, 0, 0, 1, 1]]
    assert kept(UsefulTurns(), path("AABCE")) == [[0, 1, 1, 1]], "a turn without an effect"
    assert kept(UsefulTurns(), path("ABABACE")) == [[0, 0, 0, 0, 1, 1]], "the last visit counts"
    assert kept(UsefulTurns(), path("....E")) == [[1, 1, 1, 1]], "states without a key are never equal"


def test_easy_paths_are_not_imitated() -> None:
    assert kept(UsefulTurns(), path("AE"), path("AAE"), path("ABE")) == [[0], [0, 0], [1, 1]]
    assert kept(UsefulTurns(min_turns=1), path("AE")) == [[1]]


def test_equal_turns_of_the_batch_count_as_often_as_allowed() -> None:
    one, other, different = path("ABCE", "xyz"), path("ABDE", "xuv"), path("ABE", "wy")
    found = kept(UsefulTurns(), one, other, different)
    assert found[0][0] + found[1][0] == 1, "x from A, in two paths"
    assert found[0][1] + found[2][1] == 1, "y from B, in two paths"
    assert sum(map(sum, found)) == 6
    assert kept(UsefulTurns(), different, other, one) == found[::-1], "whatever the order of the paths"
    assert kept(UsefulTurns(max_equal=2), one, other, different) == [[1, 1, 1], [1, 1, 1], [1, 1]]
    assert kept(UsefulTurns(max_equal=None), one, one) == [[1, 1, 1], [1, 1, 1]]


def test_paths_without_an_advantage_take_no_place_and_values_stay() -> None:
    failed = path("ABCE", "xyz", success=False)
    rule = UsefulTurns(credit=Filtered(value_targets=RestMcts(head="value")))
    first, second = rule([failed, path("ABCE", "xyz")])
    assert second.path_advantage.tolist() == [1, 1, 1]
    assert np.isfinite(first.value_targets["value"]).any()


def test_paths_that_share_a_turn_count_it_once() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,), state_key=1),
        N(parent=0, kind=ACTION, tokens=(5,)),
        N(parent=1, kind=OBSERVATION, tokens=(3,), state_key=2),
        N(parent=2, kind=ACTION, tokens=(6,)),
        N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=True),
        N(parent=2, kind=ACTION, tokens=(7,)),
        N(parent=5, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=True),
    )
    assert kept(UsefulTurns(), rewarded(tree)) == [[1, 1, 1, 1]]
    with pytest.raises(ValueError, match=r"UsefulTurns.min_turns: got 0; need at least 1"):
        UsefulTurns(min_turns=0)
