import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build, chains, random_tree, seeds

from bough.tree import (
    COUNTED,
    Kind,
    Outcome,
    Source,
    Tree,
    begins_turn,
    context,
    counted,
    ends_turn,
    leaves,
    levels,
    path,
    paths_through,
    sum_of_subtree,
    sum_to_root,
    text_start,
    token_node,
    trained,
    turns,
)

DONE = Outcome.TERMINATED


def windowed() -> Tree:
    """Two turns, then a rebuilt context, then a third turn that branches; one branch fails."""
    return build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        N(parent=0, kind=ACTION, tokens=(3,)),
        N(parent=1, kind=OBSERVATION, tokens=(4, 5)),
        N(parent=2, kind=ACTION, tokens=(6, 7)),
        N(parent=3, kind=EDIT, tokens=(1, 8)),
        N(parent=4, kind=ACTION, tokens=(9,)),
        N(parent=5, kind=OBSERVATION, tokens=(), outcome=DONE),
        N(parent=4, kind=ACTION, tokens=(10,), outcome=Outcome.FAILED),
    )


def test_worked_example() -> None:
    tree = windowed()
    assert leaves(tree).tolist() == [6, 7]
    assert counted(tree).tolist() == [6]
    assert path(tree, 6).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert [level.tolist() for level in levels(tree)] == [[0], [1], [2], [3], [4], [5, 7], [6]]
    assert text_start(tree).tolist() == [0, 0, 0, 0, 4, 4, 4, 4]
    assert turns(tree).tolist() == [0, 1, 1, 2, 2, 3, 3, 3]
    assert paths_through(tree).tolist() == [1, 1, 1, 1, 1, 1, 1, 0]
    assert context(tree, 3).tolist() == [1, 2, 3, 4, 5]
    assert context(tree, 5).tolist() == [1, 8]
    assert context(tree, 0).tolist() == context(tree, 4).tolist() == []
    assert tree.token[trained(tree)].tolist() == [3, 6, 7, 9]


def test_a_turn_ends_at_its_last_piece() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=(2,)),
        N(parent=1, kind=ACTION, tokens=(3,)),
        N(parent=2, kind=OBSERVATION, tokens=(4,)),
        N(parent=3, kind=ACTION, tokens=(5,), outcome=DONE),
        N(parent=1, kind=ACTION, tokens=(6,)),
        N(parent=5, kind=OBSERVATION, tokens=(7,)),
        N(parent=6, kind=ACTION, tokens=(8,), outcome=DONE),
    )
    assert np.flatnonzero(begins_turn(tree)).tolist() == [1, 4, 7]
    assert np.flatnonzero(ends_turn(tree)).tolist() == [2, 4, 5, 7]


def test_chains_share_only_the_prompt() -> None:
    tree = chains([1.0, 0.0, 2.0], turns=[1, 2, 3])
    assert len(leaves(tree)) == 3
    assert turns(tree)[leaves(tree)].tolist() == [1, 2, 3]
    assert paths_through(tree)[0] == 3
    assert set(paths_through(tree)[1:].tolist()) == {1}


@given(seeds())
def test_sums_are_what_they_say(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    value = rng.integers(-5, 6, size=tree.nodes).astype(np.float64)
    ways = [path(tree, node).tolist() for node in range(tree.nodes)]
    below = [[i for i, way in enumerate(ways) if node in way] for node in range(tree.nodes)]
    for numbers in (value, value.astype(np.int64), value > 0):
        up, down = sum_to_root(tree, numbers), sum_of_subtree(tree, numbers)
        assert up.tolist() == [sum(numbers[way]) for way in ways]
        assert down.tolist() == [sum(numbers[nodes]) for nodes in below]
    fractions = value + 0.1
    assert sum_to_root(tree, fractions).tolist() == [sum(fractions[way]) for way in ways], "from the root down"
    assert sum_of_subtree(tree, fractions) == pytest.approx([sum(fractions[nodes]) for nodes in below], abs=1e-12)
    assert tree.subtree_end.tolist() == [nodes[-1] + 1 for nodes in below]


@given(seeds())
def test_paths_and_levels(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    for depth, level in enumerate(levels(tree)):
        assert all(len(path(tree, int(node))) == depth + 1 for node in level)
    ways = [path(tree, int(leaf)) for leaf in leaves(tree) if tree.outcome[leaf] in COUNTED]
    assert paths_through(tree).tolist() == [sum(node in way for way in ways) for node in range(tree.nodes)]
    assert [way[-1] for way in ways] == counted(tree).tolist()


@given(seeds())
def test_a_context_is_what_stands_before_the_node_in_its_text(rng: np.random.Generator) -> None:
    tree = random_tree(rng, edits=0.6)
    for node in range(tree.nodes):
        walk = path(tree, node).tolist()
        breaks = [place for place, i in enumerate(walk) if tree.kind[i] in (Kind.PROMPT, Kind.EDIT)]
        assert text_start(tree)[node] == walk[breaks[-1]]
        read = [int(token) for i in walk[breaks[-1] : -1] for token in tree.tokens_of(i)]
        assert context(tree, node).tolist() == read


@given(seeds())
def test_what_is_trained_is_sampled_and_leads_somewhere(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    node = token_node(tree)
    sampled = (tree.kind == Kind.ACTION) & (tree.source == Source.SAMPLED)
    alive = {int(i) for leaf in counted(tree) for i in path(tree, int(leaf))}
    assert trained(tree).tolist() == [bool(sampled[i]) and int(i) in alive for i in node]
