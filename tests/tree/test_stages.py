import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, rewarded, seeds

from bough.tree import (
    Credited,
    Outcome,
    Rewarded,
    counted,
    exclude_leaves,
    groups,
    path,
    spread_nodes,
    spread_paths,
    token_node,
    trained,
)


def test_a_return_is_the_sum_over_channels_and_nodes() -> None:
    tree = chains([1.0, 0.0], turns=2)
    shaping = np.arange(tree.nodes, dtype=np.float64)
    both = Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward), "shaping": shaping})
    assert both.reward.tolist() == (tree.env_reward + shaping).tolist()
    assert both.returns().tolist() == [1.0 + 1 + 2 + 3 + 4, 0.0 + 5 + 6 + 7 + 8]
    assert Rewarded(tree=tree, channels={}).returns().tolist() == [0.0, 0.0]


def test_rewards_are_finite_and_one_a_node() -> None:
    tree = chains([1.0])
    for paid in (np.zeros(2), np.full(tree.nodes, np.nan)):
        with pytest.raises(ValueError, match=r"Rewarded.channels\['env'\].*need"):
            Rewarded(tree=tree, channels={"env": paid})


def test_an_advantage_is_finite_and_one_for_each_token_of_each_path() -> None:
    tree = rewarded(chains([1.0, 0.0]))
    turns = Credited(rewarded=tree, path_advantage=np.array([1.0, 1.0, -1.0, -1.0])).turn_advantage
    assert turns is not None
    assert turns.tolist() == [1.0, -1.0]
    for wrong in (np.zeros(3), np.full(4, np.nan)):
        with pytest.raises(ValueError, match=r"Credited.path_advantage.*need"):
            Credited(rewarded=tree, path_advantage=wrong)


def test_paths_of_one_turn_may_differ_in_each_token() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(1, 2)),
        N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED),
        N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED),
    )
    given = Credited(rewarded=rewarded(tree), path_advantage=np.array([1.0, 2.0, -3.0, 4.0]))
    assert given.positive.tolist() == [0, 0.5, 3, 0, 0]
    assert given.negative.tolist() == [0, -1.5, 0, 0, 0]
    assert given.turn_advantage is None
    assert not given.is_zero
    one = exclude_leaves(given, np.array([3]))
    assert (one.positive.tolist(), one.negative.tolist()) == ([0, 1, 2, 0, 0], [0] * 5)
    assert exclude_leaves(one, np.array([2])).is_zero


def test_branches_that_disagree_are_kept_apart() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(1, 2)),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, tokens=(3,), outcome=Outcome.TERMINATED),
        N(parent=2, kind=ACTION, tokens=(4,), outcome=Outcome.TERMINATED),
        N(parent=2, kind=ACTION, tokens=(5,), outcome=Outcome.FAILED),
    )
    given_ = spread_paths(rewarded(tree), np.asarray([3.0, -1.0]))
    assert given_.positive.tolist() == [0, 1.5, 1.5, 0, 3, 0, 0]
    assert given_.negative.tolist() == [0, -0.5, -0.5, 0, 0, -1, 0]
    assert given_.advantage.tolist() == [0, 1, 1, 0, 3, -1, 0]


def test_one_advantage_for_each_counted_path() -> None:
    with pytest.raises(ValueError, match=r"got advantages of shape \(3,\); need one for each of 2 paths"):
        spread_paths(rewarded(chains([1.0, 0.0])), np.zeros(3))


@given(seeds())
def test_spreading_paths_means_over_the_paths_through_a_token(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    advantage = rng.normal(size=len(counted(tree)))
    spread = spread_paths(rewarded(tree), advantage)
    ways = [path(tree, int(leaf)) for leaf in counted(tree)]
    for token, (node, learn) in enumerate(zip(token_node(tree), trained(tree), strict=True)):
        mine = [a for a, way in zip(advantage, ways, strict=True) if node in way] if learn else [0.0]
        assert spread.positive[token] == pytest.approx(np.mean(np.maximum(mine, 0)), abs=1e-6)
        assert spread.negative[token] == pytest.approx(np.mean(np.minimum(mine, 0)), abs=1e-6)


@given(seeds())
def test_spreading_nodes_gives_each_token_its_nodes_advantage(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    advantage = rng.normal(size=tree.nodes)
    spread = spread_nodes(rewarded(tree), advantage)
    wanted = np.where(trained(tree), advantage[token_node(tree)], 0.0).astype(np.float32)
    assert spread.advantage.tolist() == wanted.tolist()
    assert not np.any((spread.positive > 0) & (spread.negative < 0))


def test_groups_are_tasks_in_order_of_appearance() -> None:
    a, b, c = chains([1.0], task="x"), chains([1.0], task="y"), chains([0.0], task="x")
    assert groups([a, b, c]) == [[a, c], [b]]
    paid = [rewarded(tree) for tree in (a, b, c)]
    assert groups(paid) == [[paid[0], paid[2]], [paid[1]]]
