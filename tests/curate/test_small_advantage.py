"""LOOP's filter: what hardly matters is gone, from the mean too."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, rewarded

from bough.batch import pack
from bough.credit import Grpo
from bough.curate import SmallAdvantage
from bough.objective import Normalizer
from bough.tree import Outcome, spread_paths


def test_small_paths_leave_and_the_others_share_the_mean() -> None:
    tree = spread_paths(rewarded(chains([1.0] * 4)), np.asarray([0.5, 0.001, -0.002, -0.5]))
    admitted = SmallAdvantage(threshold=0.01)([tree])
    (thinned,) = admitted.trees
    assert admitted.dropped == {"small_advantage": 0}
    assert len(thinned.excluded_leaves) == 2
    batch = pack([thinned])
    assert len(batch.at) == len(pack([tree]).at) // 2
    assert Normalizer()(batch.paths, batch.inverse_length, batch.equal_length).sum().item() == pytest.approx(1.0)
    assert set(batch.positive.tolist()) == {0.5, 0.0}


def test_a_group_of_which_nothing_is_left_is_dropped() -> None:
    flat, live = chains([1.0, 1.0], task="flat"), chains([0.0, 1.0], task="live")
    admitted = SmallAdvantage()(Grpo()([rewarded(flat), rewarded(live)]))
    assert [tree.tree.task.id for tree in admitted.trees] == ["live"]
    assert admitted.dropped == {"small_advantage": 1}


def test_a_shared_turn_stays_with_the_path_that_stays() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, outcome=Outcome.TERMINATED),
        N(parent=2, kind=ACTION, outcome=Outcome.TERMINATED),
    )
    credited = spread_paths(rewarded(tree), np.asarray([1.0, 0.0]))
    (thinned,) = SmallAdvantage()([credited]).trees
    assert thinned.excluded_leaves.tolist() == [4]
    assert pack([credited]).paths.tolist() == [2, 1, 1]
    assert pack([credited]).positive.tolist() == [0.5, 1.0, 0.0]
    alone = pack([thinned])
    assert alone.paths.tolist() == [1, 1]
    assert alone.positive.tolist() == [1.0, 1.0], "what the other path gave to the shared turn is taken back"
    path_index = pack([thinned], paths=True).path_index
    assert path_index is not None
    assert path_index.path.tolist() == [0, 0]


def test_the_threshold_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"SmallAdvantage.threshold: got 0.0; need a number above 0"):
        SmallAdvantage(threshold=0.0)
