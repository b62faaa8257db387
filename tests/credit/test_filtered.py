"""Which paths are imitated."""

from dataclasses import replace

import pytest
from tests.credit.grown import branching, flat
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, rewarded

from bough.batch import pack
from bough.credit import Filtered, Searched
from bough.needs import needs_of, value_head
from bough.tree import Outcome, counted, path_view


def test_what_failed_is_as_if_it_had_not_been() -> None:
    (credited,) = Filtered()([rewarded(chains([1.0, 0.0, 1.0]))])
    assert credited.excluded_leaves.tolist() == counted(credited.tree)[1:2].tolist()
    assert flat(credited) == [1, 0, 1]
    batch = pack([credited])
    assert batch.positive.tolist() == [1, 1, 1, 1]


def test_shared_turns_gain_once_for_each_path_that_is_kept() -> None:
    tree = branching({"s": {"u": 1, "v": 0, "w": 1}})
    (alone,) = Filtered()([tree])
    assert alone.positive[1] == 1.0
    beside = Filtered(value_targets=Searched(head="value"))
    (credited,) = beside([tree])
    assert credited.positive[1] == pytest.approx(2 / 3)
    assert not len(credited.excluded_leaves), "a value head learns from all"
    assert credited.value_targets["value"][1] == pytest.approx(2 / 3)
    assert needs_of(beside) == {value_head("value")}


def test_the_shortest_of_a_task_first_and_the_same_words_once() -> None:
    long, short, other = (4, 4), (5,), (6,)
    nodes = [N(parent=-1, kind=PROMPT)]
    for path in (long, short, short, other):
        place = 0
        for token in path:
            nodes.append(N(parent=place, kind=ACTION, tokens=(token,)))
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION))
            place = len(nodes) - 1
        nodes[-1] = replace(nodes[-1], outcome=Outcome.TERMINATED, success=True)
    tree = rewarded(build(*nodes))
    view = path_view([tree])
    assert Filtered(max_paths=1).keeps(view).tolist() == [False, True, False, False]
    assert Filtered(max_paths=2).keeps(view).tolist() == [False, True, False, True]
    assert Filtered(max_paths=9).keeps(view).tolist() == [True, True, False, True]
    assert Filtered().keeps(view).tolist() == [True, True, True, True]


def test_only_the_answer_of_a_search_or_what_paid_enough() -> None:
    nodes = [N(parent=-1, kind=PROMPT)]
    for paid, success, answer in ((0.5, True, False), (0.9, True, True), (0.2, None, True)):
        nodes.append(N(parent=0, kind=ACTION, env_reward=paid))
        nodes.append(
            N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=success, answer=answer)
        )
    view = path_view([rewarded(build(*nodes))])
    assert Filtered(answer=True).keeps(view).tolist() == [False, True, False]
    assert Filtered(min_return=0.5).keeps(view).tolist() == [True, True, False]


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"Filtered\.max_paths: got 0"):
        Filtered(max_paths=0)
