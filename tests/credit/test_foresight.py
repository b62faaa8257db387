import numpy as np
import pytest
from tests.credit.seen import paid
from tests.trees import chains, rewarded

from bough.credit import Foresight, Grpo
from bough.needs import annotation, needs_of
from bough.tree import Rewarded

HALF = 0.707106


def two() -> Rewarded:
    """Two paths: subgoals in the first token of the first turn, and in no later turn; a stray span without a mark."""
    infos: list[list[dict[str, object]]] = [
        [{"subgoal": "key", "spans": {"subgoal": [0, 1], "action": [1, 2]}}, {"spans": {"action": [0, 2]}}],
        [{"subgoal": "door", "spans": {"subgoal": [0, 1]}}, {"spans": {"subgoal": [0, 2]}}],
    ]
    return paid([0.0, 1.0], [0.0, 0.0], infos=infos)


@pytest.mark.parametrize("rest", [0.0, 0.5])
def test_subgoals_get_the_advantage_and_the_rest_its_share(rest: float) -> None:
    tree = two()
    (credited,) = Foresight(rest=rest)([tree])
    shares = np.asarray([1, rest, rest, rest])
    assert credited.advantage[tree.tree.sampled] == pytest.approx([*(HALF * shares), *(-HALF * shares)], abs=2e-5)
    assert credited.turn_advantage is None


def test_the_whole_rest_is_the_base() -> None:
    tree = two()
    assert np.array_equal(Foresight(rest=1.0)([tree])[0].advantage, Grpo()([tree])[0].advantage)


def test_without_subgoals_nothing_is_trained() -> None:
    (credited,) = Foresight()([rewarded(chains([1.0, 0.0], turns=2))])
    assert not credited.advantage.any()


def test_what_it_needs_and_takes() -> None:
    assert needs_of(Foresight()) == {annotation("subgoal")}
    with pytest.raises(ValueError, match=r"Foresight.rest: got 2.0; need a number from 0 to 1"):
        Foresight(rest=2.0)
