"""Single-stream PO: against the rate of the task, whitened over the batch."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.credit import SingleStream
from bough.tree import Rewarded, path_view


def tracked(returns: list[float], rate: float, task: str) -> Rewarded:
    one = rewarded(chains(returns, task=task))
    return replace(one, estimates={"success_rate": np.full(len(one.tree.token), rate)})


def of_paths(*trees: Rewarded) -> list[float]:
    return SingleStream().of_paths(path_view(trees)).tolist()


def test_the_example_of_the_docstring() -> None:
    batch = [tracked([1.0], 0.5, "a"), tracked([0.0], 0.2, "b"), tracked([1.0], 0.9, "c")]
    assert of_paths(*batch) == pytest.approx([1.044074, -0.949158, -0.094916], abs=2e-5)
    credited = SingleStream()(batch)
    assert credited[0].positive.max() == pytest.approx(1.044074, abs=2e-5)
    assert credited[2].negative.min() == pytest.approx(-0.094916, abs=2e-5), "a success that is less than was expected"


def test_a_rare_success_counts_more_than_a_usual_one() -> None:
    rare, usual, _ = of_paths(tracked([1.0], 0.1, "a"), tracked([1.0], 0.8, "b"), tracked([0.0], 0.5, "c"))
    assert rare > usual


def test_paths_of_one_task_are_not_compared_with_each_other() -> None:
    together = of_paths(tracked([1.0, 0.0], 0.5, "a"), tracked([1.0], 0.2, "b"))
    apart = of_paths(tracked([1.0], 0.5, "a"), tracked([0.0], 0.5, "c"), tracked([1.0], 0.2, "b"))
    assert together == pytest.approx(apart)


@pytest.mark.parametrize("batch", [[], [tracked([1.0], 0.3, "a")], [tracked([1.0, 1.0], 0.3, "a")]])
def test_nothing_to_learn_from(batch: list[Rewarded]) -> None:
    assert of_paths(*batch) == [0.0] * sum(len(each.returns()) for each in batch)


def test_a_run_without_a_tracker_is_told() -> None:
    with pytest.raises(ValueError, match="got no estimate 'success_rate'"):
        SingleStream()([rewarded(chains([1.0]))])


def test_bounds() -> None:
    with pytest.raises(ValueError, match=r"SingleStream\.epsilon: got 0\.0; need"):
        SingleStream(epsilon=0.0)
