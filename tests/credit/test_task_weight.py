from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.credit import TargetSize, TaskWeight, dr_grpo
from bough.screen.pointing import Pointing
from bough.screen.pointings import Pointings
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


def test_the_weight_of_a_target_is_the_inverse_of_its_relative_size() -> None:
    """Elements of .04, .01 and less than a thousandth of the screen, one of all of it, and none."""
    boxes = ((0, 0, 20, 20), (5, 5, 15, 15), (0, 0, 1, 1), (0, 0, 100, 100), None)
    seen = Pointings.of(
        *(Pointing(kind="click", target_kind="click", target_box=box, screen=(100, 100)) for box in boxes)
    )
    assert TargetSize().weights(seen).tolist() == pytest.approx([1, 2, 4, 0.25, 1])
    assert TargetSize(side=0.1, most=20).weights(seen).tolist() == pytest.approx([0.5, 1, 10, 0.1, 1])
    for field in ("side", "most"):
        with pytest.raises(ValueError, match=rf"TargetSize.{field}: got 0"):
            TargetSize(**{field: 0})
