"""WebLeaper's filter: paths that find what is required, in few calls."""

import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.credit import Filtered, Grpo
from bough.curate import EfficientPaths, apply_filters
from bough.curate.efficient_paths import seeking
from bough.tree import Outcome, Tree


def paths(*counts: tuple[int, int, int] | None, task: str = "task") -> Tree:
    """A path for each (found, required, calls); the counts of an earlier turn are lower, the last turn has none."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for number, each in enumerate(counts):
        infos: list[dict[str, object]] = [{}, {}, {}]
        if each is not None:
            found, required, calls = each
            infos[0] = {"env": {"found": 0, "required": required, "calls": 1}}
            infos[1] = {"env": {"found": found, "required": required, "calls": calls}}
        parent = 0
        for turn, info in enumerate(infos):
            ends = turn == len(infos) - 1
            nodes.append(N(parent=parent, kind=ACTION, tokens=(4, 5), env_reward=float(ends and number % 2 == 0)))
            ending = Outcome.TERMINATED if ends else Outcome.OPEN
            done = number % 2 == 0 if ends else None
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, info=info, outcome=ending, success=done))
            parent = len(nodes) - 1
    return build(*nodes, task=task)


def test_the_example_in_words() -> None:
    tree = paths((4, 4, 10), (1, 4, 4), None)
    leaves = [6, 12, 18]
    assert [seeking(tree, leaf) for leaf in leaves] == [(1.0, 0.4), (0.25, 1.0), None]


@pytest.mark.parametrize(
    ("rate", "efficiency", "kept"),
    [(0.0, 0.0, [0, 1, 2, 3]), (0.3, 0.1, [0, 2, 3]), (0.3, 0.4, [2, 3]), (0.5, 0.1, [0, 3]), (0.9, 5.0, [3])],
)
def test_both_thresholds_are_exclusive(rate: float, efficiency: float, kept: list[int]) -> None:
    tree = paths((4, 4, 10), (1, 4, 4), (2, 4, 4), None)
    result = EfficientPaths(rate=rate, efficiency=efficiency)(Grpo()([rewarded(tree)]))
    (left,) = result.trees
    assert left.excluded_leaves.tolist() == [6 * (number + 1) for number in range(4) if number not in kept]
    assert result.dropped == {"inefficient": 0}
    assert len(pack([left]).at) == 6 * len(kept)


def test_groups_without_paths_are_dropped_and_imitation_takes_the_others() -> None:
    trees = [
        rewarded(paths((0, 4, 9), (0, 4, 9), task="a")),
        rewarded(paths((4, 4, 6), (4, 4, 6), (4, 4, 60), task="b")),
    ]
    found = apply_filters(Filtered()(trees), [EfficientPaths()])
    kept, dropped = found.trees, found.dropped
    assert [each.tree.task.id for each in kept] == ["b"]
    assert dropped == {"inefficient": 1}
    assert kept[0].excluded_leaves.tolist() == [12, 18], "the second fails, the third is slow"


@pytest.mark.parametrize("fields", [{"rate": 1.0}, {"rate": -0.1}, {"efficiency": -1.0}])
def test_thresholds_out_of_range(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=rf"EfficientPaths.{next(iter(fields))}: got .*; need"):
        EfficientPaths(**fields)
