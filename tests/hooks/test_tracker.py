"""The tracker: its arithmetic, what it tells of before and learns after, and that it forgets nothing when stopped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import chains, rewarded

from bough.hooks import Tracker
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.tracker import TrackerState
from bough.tree import Rewarded
from trees import as_replayed


def tracker(**settings: float) -> TrackerState:
    return Tracker(**settings).build(HookSetup(vocab_tokens=10))  # type: ignore[arg-type]


def paths(*returns: float, task: str = "task") -> Rewarded:
    return rewarded(chains(returns, task=task))


def told(one: TrackerState, *trees: Rewarded) -> list[float]:
    """The rate that each tree is told."""
    columns = [each.estimates["success_rate"] for each in one.transform(trees, 0)]
    assert all(len(set(column.tolist())) == 1 for column in columns)
    return [float(column[0]) for column in columns]


@pytest.mark.parametrize(("successes", "paths"), [(0, 1), (1, 1), (3, 8), (8, 8)])
def test_a_task_begins_with_the_weight_of_eight_paths(successes: int, paths: int) -> None:
    """alpha = 8 (s + .5) / (n + 1), beta likewise."""
    returns = np.asarray([1.0] * successes + [0.0] * (paths - successes))
    alpha, beta = Tracker().prior(returns)
    assert alpha == pytest.approx(8 * (successes + 0.5) / (paths + 1))
    assert beta == pytest.approx(8 * (paths - successes + 0.5) / (paths + 1))
    assert alpha + beta == pytest.approx(8)


@pytest.mark.parametrize(
    ("moved", "kept"),
    [(0.0, 0.96), (0.06 * -np.log2(0.95), 0.95), (0.06 * -np.log2(0.9), 0.9), (0.06, 0.875), (9.0, 0.875)],
)
def test_how_much_is_kept(moved: float, kept: float) -> None:
    """2 ** (-D / 0.06), from 0.875 to 0.96."""
    assert Tracker().kept(moved) == pytest.approx(kept)


def test_half_is_forgotten_at_half_nats_where_the_bounds_allow_it() -> None:
    assert Tracker(min_decay=0.1, max_decay=1.0).kept(0.06) == pytest.approx(0.5)


def test_the_example_of_the_docstring() -> None:
    one = tracker()
    assert told(one, paths(1.0)) == [0.5], "nothing is known before the first visit"
    assert (one.data.records["task"].alpha, one.data.records["task"].beta) == pytest.approx((6, 2))
    assert told(one, paths(0.0)) == [0.75], "not what this very path did"
    assert (one.data.records["task"].alpha, one.data.records["task"].beta) == pytest.approx((5.76, 2.92))
    assert told(one, paths(0.0)) == pytest.approx([0.663594], abs=2e-5)


def test_what_is_known_fades_by_all_that_the_policy_has_moved_since_the_visit() -> None:
    one = tracker()
    told(one, paths(1.0, task="old"))
    one.after_update(lambda: 0.003)
    told(one, paths(1.0, task="new"))
    one.after_update(lambda: 0.004)
    told(one, paths(1.0, task="old"), paths(1.0, task="new"))
    settings = Tracker()
    assert one.data.records["old"].alpha == pytest.approx(settings.kept(0.007) * 6 + 1)
    assert one.data.records["new"].alpha == pytest.approx(settings.kept(0.004) * 6 + 1)
    assert one.data.records["old"].alpha < one.data.records["new"].alpha


def test_several_paths_of_a_task_are_one_visit() -> None:
    one = tracker()
    told(one, paths(1.0))
    told(one, paths(1.0, 0.0), paths(0.25))
    assert one.data.records["task"].alpha == pytest.approx(0.96 * 6 + 1.25)
    assert one.data.records["task"].beta == pytest.approx(0.96 * 2 + 1.75)


def test_a_replayed_path_says_nothing_about_the_policy_but_is_told_the_rate() -> None:
    one = tracker()
    told(one, paths(0.0))
    assert told(one, as_replayed(paths(1.0))) == [0.25]
    assert one.data.records["task"].alpha == 2


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.1)), max_size=30))
def test_the_rate_stays_inside_and_the_weight_below_its_bound(visits: list[tuple[float, float]]) -> None:
    one = tracker()
    for paid, moved in visits:
        told(one, paths(paid))
        one.after_update(lambda moved=moved: moved)  # type: ignore[misc]
        record = one.data.records["task"]
        assert 0 < record.rate < 1
        assert record.alpha + record.beta <= 1 / (1 - 0.96) + 1e-9


def test_tasks_are_weighed_by_how_undecided_they_are() -> None:
    assert tracker().weigh(["a"]) is None, "in turn, unless it is asked to choose"
    one = tracker(choose=True)
    told(one, paths(1.0, task="known"))
    assert one.weigh(["known", "unknown"]) == pytest.approx([np.sqrt(0.75 * 0.25) + 0.05, 0.55])


def test_what_was_kept_is_all_there_is() -> None:
    one, other = tracker(), tracker()
    for step in range(5):
        told(one, paths(1.0, 0.0, task=f"a{step % 3}"), paths(0.3, task="b"))
        one.after_update(lambda: 0.0123)
    restore(other.data, save(one.data))
    assert told(one, paths(1.0, task="a1")) == told(other, paths(1.0, task="a1"))
    one.after_update(lambda: 0.1)
    other.after_update(lambda: 0.1)
    assert one.observe() == other.observe()
    for name, value in save(one.data).items():
        assert np.array_equal(value, save(other.data)[name]), name


def test_a_tracker_that_knows_nothing_can_be_kept() -> None:
    one = tracker()
    restore(one.data, save(tracker().data))
    assert one.data.records == {}


@pytest.mark.parametrize("paid", [-0.1, 1.5])
def test_returns_that_are_no_share_of_success(paid: float) -> None:
    with pytest.raises(ValueError, match=rf"got a return of {paid} \(task task\); need returns from 0 to 1"):
        told(tracker(), paths(0.0, paid))


@pytest.mark.parametrize(
    "wrong", [{"half_nats": 0.0}, {"min_decay": 0.0}, {"min_decay": 1.0}, {"max_decay": 0.5}, {"explore": 0.0}]
)
def test_bounds(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"Tracker.*: got .*; need"):
        Tracker(**wrong)
