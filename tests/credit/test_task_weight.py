from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.credit import TaskWeight, dr_grpo
from bough.tree import Rewarded, StageError


def weighted(value: object) -> Rewarded:
    tree = chains([1.0, 0.0, 0.5])
    return rewarded(replace(tree, task=replace(tree.task, data={"difficulty": value})))


def test_advantages_are_multiplied_by_the_weight_of_the_task() -> None:
    """GUI-G1: the return less the mean, times the weight; a task without a weight has 1."""
    plain = dr_grpo()([rewarded(chains([1.0, 0.0, 0.5]))])[0].path_advantage
    (heavy,), (light,) = TaskWeight()([weighted(2.5)]), TaskWeight()([rewarded(chains([1.0, 0.0, 0.5]))])
    assert np.allclose(heavy.path_advantage, 2.5 * plain)
    assert np.array_equal(light.path_advantage, plain)


@pytest.mark.parametrize("value", [0, -1, "hard", True, float("nan"), float("inf")])
def test_a_weight_is_a_number_above_zero(value: object) -> None:
    with pytest.raises(StageError, match=r"TaskWeight.field: got 'difficulty' with .*; need a finite number above 0"):
        TaskWeight()([weighted(value)])
