"""What becomes of the groups that filters drop: trained on, counted in the mean, or left out."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.curate import NonZeroAdvantage, SmallAdvantage, Ties, UncutPaths, apply_filters
from bough.tree import Credited, Kind, Outcome, Ternary, Tree, TruncatedBy, counted, spread_paths


def group(task: str, *advantages: float, cut: tuple[int, ...] = ()) -> Credited:
    """Chains of 2 tokens with these advantages; those numbered in `cut` end at a token limit."""
    tree = chains([0.0] * len(advantages), task=task)
    ended = marked(tree, "cut_off", {int(np.flatnonzero(tree.kind == Kind.ACTION)[i]): Ternary.YES for i in cut})
    return spread_paths(rewarded(ended), np.asarray(advantages))


def marked(tree: Tree, column: str, values: dict[int, int]) -> Tree:
    """The tree with other values at some nodes of a column."""
    changed = getattr(tree, column).copy()
    changed[[*values]] = [*values.values()]
    return replace(tree, **{column: changed})


def tasks(trees: object) -> list[str]:
    return [each.tree.task.id for each in trees]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ties", "trained", "only_counted", "dropped"),
    [("train", "abc", "", 0), ("count", "ac", "b", 1), ("leave", "ac", "", 1)],
)
def test_tied_groups(ties: Ties, trained: str, only_counted: str, dropped: int) -> None:
    trees = [group("a", 1.0, -1.0), group("b", 0.0, 0.0), group("c", 0.5, -0.5)]
    found = apply_filters(trees, [NonZeroAdvantage()], ties=ties)
    assert tasks(found.trees) == [*trained]
    assert tasks(found.counted_only) == [*only_counted]
    assert found.dropped == {"no_signal": dropped}


def test_a_group_outside_the_mean_leaves_both_whatever_the_loss() -> None:
    trees = [group("a", 1.0, -1.0), group("b", 0.0, 0.0)]
    found = apply_filters(trees, [NonZeroAdvantage(in_mean=False)], ties="train")
    assert (tasks(found.trees), found.counted_only, found.dropped) == (["a"], [], {"no_signal": 1})


@pytest.mark.parametrize("ties", ["train", "count", "leave"])
def test_later_filters_apply_to_tied_groups(ties: Ties) -> None:
    trees = [group("a", 1.0, -1.0), group("b", 0.0, 0.0)]
    found = apply_filters(trees, [NonZeroAdvantage(), SmallAdvantage(), NonZeroAdvantage()], ties=ties)
    assert (tasks(found.trees), found.counted_only) == (["a"], [])
    assert found.dropped == {"no_signal": 0, "small_advantage": 1}


def test_cut_paths_are_masked_and_count() -> None:
    given = group("a", 1.0, 1.0, -2.0, cut=(1,))
    found, leaves = apply_filters([given], [UncutPaths()]), counted(given.tree).tolist()
    (kept,), (masked,) = found.trees, found.counted_only
    assert kept.excluded_leaves.tolist() == leaves[1:2]
    assert masked.excluded_leaves.tolist() == [leaves[0], leaves[2]]
    assert kept.path_advantage.tolist() == [1.0] * 4 + [-2.0] * 2, "the statistics of the group are as before"
    alone = apply_filters([group("a", 1.0, -1.0, cut=(1,))], [UncutPaths(in_mean=False)])
    assert (len(alone.trees), alone.counted_only) == (1, [])


@pytest.mark.parametrize("ties", ["count", "leave"])
def test_groups_of_cut_paths_only(ties: Ties) -> None:
    """They are dropped, and count unless further rounds replace them."""
    trees = [group("a", 1.0, -1.0), group("b", 1.0, -1.0, cut=(0, 1)), group("c", 0.0, 1.0, cut=(1,))]
    found = apply_filters(trees, [UncutPaths(), NonZeroAdvantage()], ties=ties)
    assert tasks(found.trees) == ["a"]
    assert found.dropped == {"cut_off": 1, "no_signal": 1}
    assert sorted(tasks(found.counted_only)) == (["b", "c", "c"] if ties == "count" else [])


def test_a_turn_before_the_end_is_cut_and_limits_of_the_path_count_where_asked() -> None:
    tree = chains([0.0, 0.0], turns=[2, 1], task="a")
    tree = marked(tree, "cut_off", {1: Ternary.YES})
    given = spread_paths(rewarded(tree), np.asarray([1.0, -1.0]))
    (kept,) = UncutPaths()([given]).trees
    assert kept.excluded_leaves.tolist() == [int(tree.subtree_end[1] - 1)]
    tree = marked(tree, "truncated_by", {tree.nodes - 1: TruncatedBy.TURNS})
    tree = marked(tree, "outcome", {tree.nodes - 1: Outcome.TRUNCATED})
    given = spread_paths(rewarded(tree), np.asarray([1.0, -1.0]))
    assert UncutPaths()([given]).dropped == {"cut_off": 0}
    limited = UncutPaths(limits=True)([given])
    assert (limited.trees, limited.dropped) == ((), {"cut_off": 1})
    assert len(limited.masked) == 1


def test_filters_that_are_no_savings_leave_the_mean() -> None:
    found = apply_filters([group("a", 1.0, -1.0, 0.001), group("b", 0.0, 0.001)], [SmallAdvantage()], ties="count")
    assert (tasks(found.trees), found.counted_only, found.dropped) == (["a"], [], {"small_advantage": 1})
