from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.credit.grown import flat, path_index
from tests.credit.seen import paid
from tests.trees import chains, random_tree, rewarded

from bough.credit import Srgpo, compares_with
from bough.tree import Rewarded, counted, path_view


def both(given: Rewarded) -> Rewarded:
    """The tree with the same rewards in two channels, for steps and for the outcome."""
    return replace(given, channels=dict.fromkeys(("env", "step"), given.reward))


def ending(given: Rewarded, outcomes: Sequence[float]) -> Rewarded:
    """The tree with its rewards for steps, and an outcome at the end of each path."""
    outcome = np.zeros(given.tree.nodes)
    outcome[counted(given.tree)] = outcomes
    return replace(given, channels={"success": outcome, "step": given.reward})


PAIR = ending(path_index(("a", "b", "c"), ("a", "b", "d"), paid=[[1, 0, 1], [0, 0, 1]]), [1, 0])
"""Step rewards and outcomes of the card."""


def test_worked_example() -> None:
    theirs = Srgpo(as_released=True)
    assert flat(*theirs([PAIR])) == pytest.approx(
        [1.369304, 0.456435, 1.369304, -1.369304, -1.369304, -0.456435], abs=2e-5
    )
    # Over paths, the first part is 0.707106 instead of 0.912869.
    ours = [1.163541, 0.250671, 1.163541, -1.163541, -1.163541, -0.250671]
    assert flat(*Srgpo()([PAIR])) == pytest.approx(ours, abs=2e-5)
    assert flat(*Srgpo(size=0)([PAIR])) == pytest.approx(ours, abs=2e-5)


def test_step_rewards_are_no_part_of_the_outcome() -> None:
    """Three paths with outcomes 1, 0, 0 and step rewards that add up to 0, 1, 2."""
    given = ending(paid([0.0, 0.0], [1.0, 0.0], [1.0, 1.0]), [1, 0, 0])
    plain = Srgpo(weight=0.0, norm="mean")([given])
    assert flat(*plain) == pytest.approx([2 / 3, 2 / 3, -1 / 3, -1 / 3, -1 / 3, -1 / 3], abs=2e-5)
    whole = Srgpo(weight=0.5, norm="mean")([given])
    apart = [each / 2 for each in (-0.5, -0.5, 0.5, -0.5, 0.5, 0.5)]
    assert flat(*whole) == pytest.approx([a + b for a, b in zip(flat(*plain), apart, strict=True)], abs=2e-5)


def test_a_tree_needs_step_rewards_and_something_else() -> None:
    given = paid([0.0, 1.0])
    with pytest.raises(
        ValueError, match=r"Srgpo.step: got 'step' and the channels \['env'\] \(task task\); need a reward"
    ):
        Srgpo()([given])
    with pytest.raises(ValueError, match=r"Srgpo.step: got 'env' and the channels \['env'\]"):
        Srgpo(step="env")([given])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Srgpo(within="task"), [-0.5, 0.5, -0.5, 0.5]),
        (Srgpo(), [-5.5, -4.5, 4.5, 5.5]),
        (Srgpo(within="task", as_released=True), [-5.5, -4.5, 4.5, 5.5]),
    ],
)
def test_groups_within_a_task(rule: Srgpo, expected: list[float]) -> None:
    """Defect 4 of released code: what keeps groups within a task does nothing."""
    one, other = both(paid([0.0, 1.0], task="p")), both(paid([10.0, 11.0], task="q"))
    only_steps = [replace(rule, weight=w, norm="mean")([one, other]) for w in (1.0, 0.0)]
    with_, without = (flat(*credited) for credited in only_steps)
    assert [a - b for a, b in zip(with_, without, strict=True)] == pytest.approx(expected, abs=2e-5)


def test_rewards_are_of_the_step_and_not_to_come() -> None:
    late = both(paid([0.0, 0.0, 1.0], [0.0, 0.0, 1.0]))
    assert flat(*Srgpo(norm="mean", weight=1.0)([late])) == pytest.approx([-1 / 3, -1 / 3, 2 / 3] * 2, abs=2e-5)


def test_groups_are_of_one_size_and_random() -> None:
    trees = [rewarded(random_tree(np.random.default_rng(seed), task=f"{seed // 2}")) for seed in range(20)]
    view = path_view(trees)
    turns = len(view.path)
    assert turns > 100
    sizes = np.bincount(Srgpo(size=16).groups(view))
    assert sorted(sizes.tolist(), reverse=True)[: turns // 16] == [16] * (turns // 16)
    assert sizes.sum() == turns
    groups = [Srgpo(size=16, seed=seed).groups(view) for seed in (0, 0, 1)]
    assert np.array_equal(groups[0], groups[1])
    assert not np.array_equal(groups[0], groups[2])
    # Neighbours meet no more often than any two: 15 of the other turns are in one's group.
    together = np.mean([np.mean(np.diff(Srgpo(size=16, seed=seed).groups(view)) == 0) for seed in range(40)])
    assert together == pytest.approx(15 / turns, abs=0.02)
    within = Srgpo(size=4, within="task").groups(view)
    tasks = view.task[view.path]
    assert all(len(set(tasks[within == group].tolist())) == 1 for group in range(int(within.max()) + 1))
    assert np.bincount(within).max() == 4


def test_a_step_left_over_by_itself_gets_nothing() -> None:
    three = both(paid([0.0, 1.0, 5.0]))
    advantage = flat(*Srgpo(size=2, norm="mean", weight=1.0)([three]))
    assert sum(each == 0 for each in advantage) == 1
    assert sum(advantage) == pytest.approx(0)


def test_a_path_alone_in_its_task() -> None:
    alone = both(rewarded(chains([1.0], task="alone")))
    assert flat(*Srgpo()([alone])) == [0.0]
    assert flat(*Srgpo(as_released=True, norm="mean")([alone])) == [1.0]
    assert compares_with(Srgpo()) == "batch"


def test_ranges() -> None:
    for size in (-1, 1):
        with pytest.raises(ValueError, match=f"Srgpo.size: got {size}; need 2 or more, or 0 for all steps"):
            Srgpo(size=size)
    with pytest.raises(ValueError, match=r"Srgpo.epsilon: got 0.0; need a number above 0"):
        Srgpo(epsilon=0.0)
