"""The filter of paths by the scores of their turns."""

from dataclasses import replace

import pytest
from tests.trees import chains, rewarded

from bough.batch import pack
from bough.credit import Filtered, Grpo
from bough.curate import ScoredPaths, apply_filters
from bough.tree import Appraisal, Entry, StageError, Tree, Verdict, exclude_leaves, path_view

ROWS = [(0.9, 0.5), (0.8, 0.8), (0.9, 0.9)]


def appraised(*rows: tuple[float, ...], task: str = "task") -> Tree:
    """Paths of two turns with these values in the column."""
    tree = chains([1.0] * len(rows), turns=2, task=task)
    nodes = path_view([rewarded(tree)]).node.tolist()
    values = [value for row in rows for value in row]
    entries = {node: Entry(value=value, verdict=Verdict.OK) for node, value in zip(nodes, values, strict=True)}
    return replace(tree, appraisals={"reward_model": Appraisal.of(entries, tree.nodes)})


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (ScoredPaths(min_score=0.6), [1, 2]),
        (ScoredPaths(min_score=0.6, max_paths=1), [2]),
        (ScoredPaths(min_score=0.6, by="mean"), [0, 1, 2]),
        (ScoredPaths(min_score=0.6, by="product"), [1, 2]),
        (ScoredPaths(min_score=0.85, by="last"), [2]),
    ],
)
def test_paths_of_high_scores_stay(rule: ScoredPaths, kept: list[int]) -> None:
    (credited,) = Grpo()([rewarded(appraised(*ROWS))])
    (found,) = rule([credited]).trees
    leaf = path_view([credited.rewarded]).leaf
    assert set(leaf.tolist()) - set(found.excluded_leaves.tolist()) == {int(leaf[at]) for at in kept}


def test_a_group_without_a_path_is_dropped_and_imitation_learns_the_rest() -> None:
    trees = Filtered()([rewarded(appraised(*ROWS)), rewarded(appraised((0.1, 0.1), task="bad"))])
    kept = apply_filters(trees, [ScoredPaths(min_score=0.6)])
    found, dropped = kept.trees, kept.dropped
    assert dropped == {"low_score": 1}
    assert [each.tree.task.id for each in found] == ["task"]
    assert pack(found) is not None


def test_a_tree_without_the_column_is_refused() -> None:
    with pytest.raises(StageError, match=r"got 'reward_model' and a tree with the columns \[\]"):
        ScoredPaths()(Grpo()([rewarded(chains([1.0]))]))


def test_paths_that_an_earlier_filter_removed_take_no_place() -> None:
    (credited,) = Grpo()([rewarded(appraised(*ROWS))])
    leaf = path_view([credited.rewarded]).leaf
    (found,) = ScoredPaths(min_score=0.6, max_paths=1)([exclude_leaves(credited, leaf[2:])]).trees
    assert found.excluded_leaves.tolist() == [int(leaf[0]), int(leaf[2])]
    assert not ScoredPaths(min_score=0.6)([exclude_leaves(credited, leaf[1:])]).trees


def test_settings() -> None:
    with pytest.raises(ValueError, match=r"ScoredPaths.by: got 'median'; need 'mean', 'min', 'last' or 'product'"):
        ScoredPaths(by="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ScoredPaths.min_score: got nan; need a finite number"):
        ScoredPaths(min_score=float("nan"))
