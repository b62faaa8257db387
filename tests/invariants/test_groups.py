"""Invariants 3 and 4: who counts in a group's statistics, and what groups give that can't be compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build, chains, random_tree, rewarded, seeds, sides

from bough.batch import pack
from bough.credit import Grpo, dr_grpo, rloo
from bough.tree import COUNTED, Credited, Kind, Outcome, Tree, counted, path, token_node

RULES = {"grpo": Grpo(), "dr_grpo": dr_grpo(), "rloo": rloo(), "loo_std": Grpo(mean="leave_one_out")}
NOT_COUNTED = [Outcome.OPEN, Outcome.REFUSED, Outcome.FAILED]
few = st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=1, max_size=6)


def first_actions(credited: Credited) -> list[tuple[float, float]]:
    """Gain and lose at the first token of each chain, in order."""
    tree, (positive, negative) = credited.tree, sides(credited)
    begins = tree.span[np.flatnonzero(tree.parent == 0)]
    return [*zip(positive[begins].tolist(), negative[begins].tolist(), strict=True)]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@given(good=few, bad=few, outcome=st.sampled_from(NOT_COUNTED))
def test_paths_that_do_not_count_move_nobodys_baseline(
    rule: Grpo, good: list[float], bad: list[float], outcome: Outcome
) -> None:
    (alone,) = rule([rewarded(chains(good))])
    outcomes = [Outcome.TERMINATED] * len(good) + [outcome] * len(bad)
    (beside,) = rule([rewarded(chains(good + bad, outcomes=outcomes))])
    assert first_actions(beside)[: len(good)] == first_actions(alone)
    assert set(first_actions(beside)[len(good) :]) == {(0.0, 0.0)}


@given(seeds(), st.sampled_from(NOT_COUNTED))
def test_in_a_tree_too(rng: np.random.Generator, outcome: Outcome) -> None:
    """A branch that starts to fail takes itself out of what the others are compared with, and nothing else."""
    tree = random_tree(rng, unusual=0.0)
    ends = counted(tree)
    dead = int(rng.choice(ends))
    marks = np.array(tree.outcome)
    marks[dead] = outcome
    columns = {name: column for name, column in tree.columns().items() if name != "outcome"}
    without = Tree(task=tree.task, info=tree.info, outcome=marks, **columns)  # type: ignore[arg-type]
    (credited,) = Grpo()([rewarded(without)])
    kept = [leaf for leaf in ends.tolist() if leaf != dead]
    expected = Grpo().advantages(rewarded(tree).returns()[ends != dead]) if kept else []
    ways = [path(tree, leaf) for leaf in kept]
    for node in np.flatnonzero(tree.kind == Kind.ACTION):
        mine = [a for a, way in zip(expected, ways, strict=True) if node in way] or [0.0]
        here = token_node(tree) == node
        assert credited.positive[here] == pytest.approx(np.mean(np.maximum(mine, 0)), abs=1e-6)
        assert credited.negative[here] == pytest.approx(np.mean(np.minimum(mine, 0)), abs=1e-6)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@given(returns=st.floats(-1e6, 1e6), size=st.integers(1, 6))
def test_groups_of_one_and_groups_that_agree_get_exactly_zero(rule: Grpo, returns: float, size: int) -> None:
    (credited,) = rule([rewarded(chains([returns] * size))])
    assert not credited.positive.any()
    assert not credited.negative.any()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@given(returns=few)
def test_never_nan_and_ties_are_ties(rule: Grpo, returns: list[float]) -> None:
    advantage = rule.advantages(np.asarray(returns))
    assert np.all(np.isfinite(advantage))
    for value in returns:
        assert len(set(advantage[np.asarray(returns) == value].tolist())) == 1


def in_texts(returns: list[float], turns: list[int], window: bool) -> Tree:
    """Chains of several turns; with a window each turn is a text of its own, which makes a row of its own."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for paid, length in zip(returns, turns, strict=True):
        place = 0
        for turn in range(length):
            nodes.append(N(parent=place, kind=ACTION, tokens=(4, 5)))
            last = turn == length - 1
            ending = {"outcome": Outcome.TERMINATED} if last else {}
            nodes.append(N(parent=len(nodes) - 1, kind=EDIT if window and not last else OBSERVATION, **ending))  # type: ignore[arg-type]
            nodes[-2] = N(parent=nodes[-2].parent, kind=ACTION, tokens=(4, 5), env_reward=paid if last else 0.0)
            place = len(nodes) - 1
    return build(*nodes)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_statistics_are_over_paths_not_rows(rule: Grpo) -> None:
    returns = [1.0, 0.0, 0.0, 0.5]
    short, long, rebuilt = (
        in_texts(returns, t, w) for t, w in (([1] * 4, False), ([6, 1, 2, 3], False), ([6, 1, 2, 3], True))
    )
    credited = rule([rewarded(short)]) + rule([rewarded(long)]) + rule([rewarded(rebuilt)])
    assert first_actions(credited[0]) == first_actions(credited[1]) == first_actions(credited[2])
    assert [pack([one]).rows for one in credited] == [4, 4, 12]


def test_what_counts_is_stated_once() -> None:
    assert set(COUNTED) | set(NOT_COUNTED) == set(Outcome)
