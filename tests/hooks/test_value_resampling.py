"""VSPO: values of groups, full batches, damped copies."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains

from bough.cli.find import find_run
from bough.credit import DampedCopies, Grpo
from bough.hooks import ValueResampling
from bough.hooks.hook import HookSetup
from bough.hooks.value_resampling import ValueResamplingState
from bough.tree import Credited, Rewarded, Task


def state(best: float = 1.0) -> ValueResamplingState:
    return ValueResampling(best=best).build(HookSetup(vocab_tokens=9))


def batch(**returns: list[float]) -> list[Rewarded]:
    """A tree for each task, with a path of one turn for each return."""
    trees = {name: replace(chains(each), task=Task(id=name)) for name, each in returns.items()}
    return [Rewarded(tree=tree, channels={"env": tree.env_reward}) for tree in trees.values()]


def mass(credited: Credited) -> float:
    """The sum of absolute advantages."""
    return float(np.abs(credited.path_advantage).sum())


def test_the_worked_example() -> None:
    value = ValueResampling().value
    groups = [[1, 0, 0, 0, 0], [1, 0, 0, 1, 0], [1, 1, 1, 1, 0], [1] * 5, [0] * 5, [1]]
    found = [value(np.asarray(each, dtype=np.float64)) for each in groups]
    assert found == pytest.approx([0.357771, 0.328634, 0.089443, 0, 0, 0], abs=2e-5)
    assert value(np.asarray([3.0, 2.0])) == 0


def test_a_batch_stays_full_and_copies_are_groups_of_their_own() -> None:
    given = batch(a=[1, 0, 0, 0], b=[0, 0, 0, 0], c=[1, 1, 1, 1], d=[1, 1, 0, 0])
    hook = state()
    found = hook.transform(given, 3)
    assert len(found) == 4
    names = [each.tree.task.id for each in found]
    assert len(set(names)) == 4
    assert (names[0], names[3]) == ("a", "d")
    assert [each.tree.replayed for each in found] == [False, True, True, False]
    assert all(not each.is_zero for each in Grpo()(found)), "no group without a signal is left"
    for copied in (found[1], found[2]):
        source = found[0] if names[found.index(copied)].startswith("a") else found[3]
        assert np.array_equal(copied.tree.token, source.tree.token)
        assert np.array_equal(Grpo()([copied])[0].path_advantage, Grpo()([source])[0].path_advantage)
    assert hook.observe()["resampled/groups"] == 2
    assert hook.observe() == {"resampled/groups": 0.0, "resampled/most": 1.0}
    again = state().transform(given, 3)
    assert [each.tree.task.id for each in again] == names, "by the seed alone"


def test_valuable_groups_are_drawn_in_proportion_to_their_value() -> None:
    given = batch(a=[1, 0, 0, 0, 0], b=[1, 1, 1, 1, 0], c=[0] * 5)
    drawn = [state().transform(given, seed)[2].tree.task.id[0] for seed in range(400)]
    assert drawn.count("a") / 400 == pytest.approx(0.357771 / (0.357771 + 0.089443), abs=0.06)


def test_copies_together_weigh_the_root_of_their_number() -> None:
    given = batch(a=[1, 0, 0, 0], b=[0] * 4, c=[0] * 4, d=[1] * 4)
    found = state().transform(given, 0)
    single = mass(Grpo()(given)[0])
    assert sum(map(mass, DampedCopies()(found))) == pytest.approx(2 * single)
    assert sum(map(mass, DampedCopies(power=0.0)(found))) == pytest.approx(4 * single), "without damping they dominate"
    assert max(np.abs(each.path_advantage).max() for each in DampedCopies(max_advantage=0.3)(found)) == pytest.approx(
        0.3
    )
    once = state().transform(batch(a=[1, 0, 0, 0], b=[1, 1, 0, 0]), 0)
    for one, other in zip(DampedCopies(max_advantage=0.3)(once), Grpo()(once), strict=True):
        assert np.array_equal(one.path_advantage, other.path_advantage), "a group that is there once is left alone"


def test_a_batch_of_tied_groups_stays() -> None:
    given = batch(a=[0.0, 0.0], b=[1.0, 1.0])
    found = state().transform(given, 0)
    assert [each.tree for each in found] == [each.tree for each in given]
    assert all(each.is_zero for each in DampedCopies()(found))
    assert state().data is None


def test_the_method_stages_rewards_or_not() -> None:
    run, plain = find_run("vspo", "search"), find_run("vspo(staged=false)", "search")
    assert run.method.hooks == (ValueResampling(best=2.0),)
    assert plain.method.hooks == (ValueResampling(best=1.0),)
    assert [type(each).__name__ for each in run.world.rewards] == ["EnvReward", "StagedReward"]
    assert [type(each).__name__ for each in plain.world.rewards] == ["EnvReward"]


@pytest.mark.parametrize("best", [float("nan"), float("inf")])
def test_the_largest_return_is_finite(best: float) -> None:
    with pytest.raises(ValueError, match=r"ValueResampling.best: got .*; need a finite number"):
        ValueResampling(best=best)
