"""Tasks that the policy fails are drawn more often."""

from dataclasses import replace

import pytest
from tests.trees import chains, rewarded

from bough.hooks import FailureSampling
from bough.hooks.failure_sampling import FailureSamplingState
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.tree import Rewarded, leaves
from trees import as_replayed


def fresh(floor: float = 0.05) -> FailureSamplingState:
    return FailureSampling(floor=floor).build(HookSetup(vocab_tokens=10))


def group(*success: bool, task: str) -> Rewarded:
    tree = chains([0.0] * len(success), task=task)
    known = tree.success.copy()
    known[leaves(tree)] = success
    return rewarded(replace(tree, success=known))


def test_weights_follow_the_share_of_failures() -> None:
    one = fresh()
    one.transform([group(True, True, task="a"), group(False, False, task="b"), group(True, False, task="c")], 0)
    assert one.weigh(["a", "b", "c", "new"]) == pytest.approx([0.05, 1.0, 0.525, 1.0])
    assert one.observe() == pytest.approx({"failures/known": 3.0, "failures/rate": 0.5})


def test_the_last_visit_counts_and_replayed_paths_do_not() -> None:
    one = fresh()
    one.transform([group(False, False, task="a")], 0)
    one.transform([as_replayed(group(True, True, task="a"))], 0)
    assert one.data.success == {"a": 0.0}
    one.transform([group(True, True, task="a")], 0)
    assert one.data.success == {"a": 1.0}


def test_the_state_is_restored() -> None:
    one, other = fresh(), fresh()
    one.transform([group(True, False, task="a"), group(True, task="ä")], 0)
    restore(other.data, save(one.data))
    assert other.data.success == one.data.success
    with pytest.raises(ValueError, match=r"FailureSampling.floor: got 0; need a number above 0 and up to 1"):
        FailureSampling(floor=0)
