"""HAPO's penalty on repeated n-grams: the worked example, shared turns, and turns that look alike."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.cli.find import find_run
from bough.reward import Repetition
from bough.reward.repetition import repeated_tokens
from bough.tree import Outcome, Tree

DONE = Outcome.TERMINATED


def written(*actions: str) -> Tree:
    """A path with these actions, a letter a token."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for number, letters in enumerate(actions):
        over = DONE if number + 1 == len(actions) else Outcome.OPEN
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=tuple(map(ord, letters))))
        nodes.append(N(parent=2 * number + 1, kind=OBSERVATION, tokens=(7, 7, 7, 7), outcome=over))
    return build(*nodes)


def paid(tree: Tree, **settings: float) -> list[float]:
    (channels,) = Repetition(penalty=1.0, **settings)([tree])  # type: ignore[arg-type]
    return channels["repetition"][tree.kind == ACTION].tolist()


@pytest.mark.parametrize(
    ("letters", "cost"), [("abcabc", 0.5), ("aaaa", 0.75), ("abcab", 0), ("ab", 0), ("abcabcd", 3 / 7)]
)
def test_worked_example(letters: str, cost: float) -> None:
    assert paid(written(letters)) == pytest.approx([-cost])


def test_the_share_is_of_all_sampled_tokens_and_observations_do_not_count() -> None:
    assert paid(written("abcabc", "xyz")) == pytest.approx([0, -3 / 9])
    assert paid(written("go on", "go on")) == [0, 0], "equal turns are no repetition"
    assert paid(written("aa"), n=1) == pytest.approx([-0.5])


def test_a_shared_action_counts_on_each_path() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=tuple(map(ord, "abcabc"))),
        N(parent=1, kind=OBSERVATION, tokens=(7,)),
        N(parent=2, kind=ACTION, tokens=(5, 6)),
        N(parent=3, kind=OBSERVATION, outcome=DONE),
        N(parent=2, kind=ACTION, tokens=(5,) * 4),
        N(parent=5, kind=OBSERVATION, outcome=DONE),
    )
    assert repeated_tokens(tree, 3)[tree.kind == ACTION].tolist() == [3, 0, 3]
    assert paid(tree) == pytest.approx([0, -3 / 8, -6 / 10])


def test_an_action_in_pieces_repeats_what_it_repeats_in_one() -> None:
    """`abcabc` and `abcxyz` share the piece `abc`."""
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=tuple(map(ord, "abc"))),
        N(parent=1, kind=ACTION, tokens=tuple(map(ord, "abc")), outcome=DONE),
        N(parent=1, kind=ACTION, tokens=tuple(map(ord, "xyz")), outcome=DONE),
    )
    assert paid(tree) == pytest.approx([0, -0.5, 0])


def test_hapo_pays_it_on_demand() -> None:
    run = find_run("hapo(repetition=0.2, history=mean)", "screens")
    assert Repetition(penalty=0.2) in run.world.rewards
    assert run.method.hooks[0].history == "mean"  # type: ignore[attr-defined]
    assert not any(isinstance(each, Repetition) for each in find_run("hapo", "screens").world.rewards)
    with pytest.raises(ValueError, match=r"Repetition.n: got 0; need at least 1"):
        Repetition(n=0)
    assert np.isclose(Repetition(penalty=0.25).reward_ranges["repetition"].low, -0.25)
