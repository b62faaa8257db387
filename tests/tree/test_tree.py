import dataclasses

import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, seeds

from bough.tree import (
    DTYPES,
    UNKNOWN_VALUES,
    Kind,
    NodeValues,
    Outcome,
    Source,
    Task,
    Ternary,
    Tree,
    TreeNode,
    draft_columns,
)


def test_columns_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        chains([1.0]).token[0] = 7


def test_a_tree_equals_itself_and_nothing_that_differs_by_a_number() -> None:
    tree, same, other = chains([1.0, 0.0]), chains([1.0, 0.0]), chains([1.0, 0.5])
    assert tree.equals(same)
    assert not tree.equals(other)
    assert not tree.equals(chains([1.0, 0.0], task="another"))


def change(tree: Tree, **columns: object) -> Tree:
    return dataclasses.replace(tree, **columns)  # type: ignore[arg-type]


def test_columns_that_do_not_fit_together_are_refused() -> None:
    tree = chains([1.0, 0.0])
    with pytest.raises(ValueError, match=r"Tree.token: got int64 of shape \(11,\); need int32 of shape \(11,\)"):
        change(tree, token=tree.token.astype(np.int64))
    with pytest.raises(ValueError, match=r"Tree.info: got 1 mappings; need one for each of the 5 nodes"):
        change(tree, info=({},))
    with pytest.raises(ValueError, match=r"Tree.span"):
        change(tree, span=tree.span + 1)
    with pytest.raises(ValueError, match=r"Tree.parent: got a parent at or after its child"):
        change(tree, parent=np.asarray([-1, 0, 1, 4, 3], dtype=np.int32))
    with pytest.raises(ValueError, match=r"no PROMPT at node 0"):
        change(tree, kind=np.asarray([1, 1, 2, 1, 2], dtype=np.int8))
    with pytest.raises(ValueError, match=r"Tree.outcome: got an ended node with children"):
        change(tree, outcome=np.ones(5, dtype=np.int8))


def test_logprobs_stand_exactly_at_sampled_tokens() -> None:
    tree = chains([1.0, 0.0])
    wrong = {"a hole": np.where(tree.sampled, np.nan, np.nan), "infinite": np.where(tree.sampled, -np.inf, np.nan)}
    wrong["an observation"] = np.full(11, -1.0)
    for logprob in wrong.values():
        with pytest.raises(ValueError, match=r"Tree.logprob: need a finite number at every sampled token"):
            change(tree, logprob=logprob.astype(np.float32))


def test_nodes_out_of_depth_first_order_are_refused() -> None:
    # Breadth first: the second child of the root stands between the first child and its own child.
    end = Outcome.TERMINATED
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION), N(parent=0, kind=ACTION, outcome=end)]
    with pytest.raises(ValueError, match=r"got node 3 with parent 1, whose subtree had already ended"):
        build(*nodes, N(parent=1, kind=OBSERVATION, outcome=end))


def test_a_task_has_a_name() -> None:
    with pytest.raises(ValueError, match=r"Task.id: got an empty string"):
        Task(id="")


@given(seeds())
def test_subtrees_are_contiguous(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    for node in range(tree.nodes):
        below = {node}
        for other in range(node + 1, tree.nodes):
            if tree.parent[other] in below:
                below.add(other)
        assert below == set(range(node, node + len(below)))


def test_a_tree_is_built_from_nodes() -> None:
    tree = build(
        TreeNode(parent=-1, kind=Kind.PROMPT, tokens=[7, 8]),
        TreeNode(parent=0, kind=Kind.ACTION, tokens=[1, 2], logprob=[-0.1, -0.2], outcome=Outcome.TERMINATED),
        TreeNode(parent=0, kind=Kind.ACTION, tokens=[3], source=Source.TEACHER, outcome=Outcome.TERMINATED),
        task=Task(id="t", seed=3),
        policy_version=4,
    )
    assert tree.token.tolist() == [7, 8, 1, 2, 3]
    assert tree.sampled.tolist() == [False, False, True, True, False]
    assert tree.logprob[tree.sampled].tolist() == pytest.approx([-0.1, -0.2])
    assert (tree.policy_version.tolist(), tree.task.seed) == ([-1, 4, -1], 3)
    with pytest.raises(ValueError, match="build: got 2 numbers in logprob of node 0; need 1, one a token"):
        build(TreeNode(parent=-1, kind=Kind.PROMPT, logprob=[0.0, 0.0]))


def test_what_is_not_given_is_unknown_and_not_false() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, outcome=Outcome.TERMINATED),
        N(parent=0, kind=ACTION, outcome=Outcome.TERMINATED, success=False, valid=False, chain=0),
        N(parent=0, kind=ACTION, outcome=Outcome.TERMINATED, success=True, valid=True, chain=1),
    )
    assert [Ternary(each).known for each in tree.success.tolist()] == [None, None, False, True]
    assert tree.valid.tolist() == [Ternary.UNKNOWN, Ternary.UNKNOWN, Ternary.NO, Ternary.YES]
    assert tree.chain.tolist() == [-1, -1, 0, 1]
    assert np.isnan(tree.value).all()
    assert {name: column.dtype for name, column in tree.columns().items()} == DTYPES


def test_a_node_may_lack_the_columns_that_are_declared_with_an_unknown_value() -> None:
    lacking = {name: value for name, (value,) in draft_columns([NodeValues()]).items()}
    assert lacking == pytest.approx(dict(UNKNOWN_VALUES), nan_ok=True)
    assert [each.name for each in dataclasses.fields(NodeValues)] == list(UNKNOWN_VALUES)


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([], r"build: got no nodes; need the root first"),
        (
            [N(parent=-1, kind=PROMPT), N(parent=0, kind="ACTION")],
            "node 1: got kind='ACTION'; need one of Kind.PROMPT",
        ),
        ([N(parent=-1, kind=PROMPT), N(parent=1, kind=ACTION)], "node 1: got parent=1; need an earlier node, 0 to 0: "),
    ],
)
def test_a_node_that_does_not_fit_is_named(nodes: list[TreeNode], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        build(*nodes)
