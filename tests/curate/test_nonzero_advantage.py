import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.credit import Grpo
from bough.curate import NonZeroAdvantage
from bough.tree import spread_paths


def test_groups_without_advantage_are_dropped_and_counted() -> None:
    rows = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [0.0, 0.0], "d": [0.0, 2.0]}
    trees = Grpo()([rewarded(chains(returns, task=task)) for task, returns in rows.items()])
    admitted = NonZeroAdvantage()(trees)
    assert [credited.tree.task.id for credited in admitted.trees] == ["a", "d"]
    assert admitted.trees == (trees[0], trees[3])
    assert admitted.dropped == {"no_signal": 0}
    assert [tied.tree for tied in admitted.tied] == [trees[1].tree, trees[2].tree]
    outside = NonZeroAdvantage(in_mean=False)(trees)
    assert outside.trees == admitted.trees
    assert (outside.dropped, outside.tied) == ({"no_signal": 2}, ())


def test_a_group_stays_whole_and_in_place() -> None:
    # No tree of task "a" disagrees with itself; together they do.
    trees = Grpo()([rewarded(chains([r], task=t)) for t, r in (("a", 1.0), ("b", 1.0), ("a", 0.0), ("b", 1.0))])
    silent = Grpo()([rewarded(chains([0.5, 0.5], task="a"))])
    admitted = NonZeroAdvantage()([*trees, *silent])
    assert admitted.trees == (trees[0], trees[2], *silent)
    assert [tied.tree for tied in admitted.tied] == [trees[1].tree, trees[3].tree]


def test_nothing_in_nothing_out() -> None:
    assert NonZeroAdvantage()([]).trees == ()
    assert NonZeroAdvantage()([]).dropped == {"no_signal": 0}


def test_tolerance_is_the_largest_advantage_that_counts_as_none() -> None:
    (tree,) = [spread_paths(rewarded(chains([0.0, 0.0])), np.asarray([0.25, -0.25]))]
    assert NonZeroAdvantage(tolerance=0.125)([tree]).trees == (tree,)
    nearly = NonZeroAdvantage(tolerance=0.25)([tree])
    assert nearly.trees == ()
    assert nearly.tied[0].is_zero, "a term of the loss that keeps the tree adds no policy gradient"
    with pytest.raises(ValueError, match=r"NonZeroAdvantage.tolerance: got -1.0; need 0 or more"):
        NonZeroAdvantage(tolerance=-1.0)
