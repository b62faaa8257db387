import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, PROMPT, N, build, credited, random_tree, seeds, some_set

from bough.batch import pack
from bough.tree import cut_tree, join_trees, tree_record


def bits(*tokens: int, size: int = 16) -> bytes:
    return np.packbits(np.isin(np.arange(size), tokens), bitorder="little").tobytes()


def test_equal_sets_are_stored_once() -> None:
    one, other = bits(3), bits(3, 4, 9)
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=[1]),
        N(parent=0, kind=ACTION, tokens=[3, 4, 9], allowed=[one, other, other]),
        N(parent=0, kind=ACTION, tokens=[5]),
    )
    assert tree.allowed.tolist() == [-1, 0, 1, 1, -1]
    assert tree.allowed_sets.tolist() == [[8, 0], [24, 2]]


def test_a_sampled_token_is_in_its_own_set() -> None:
    with pytest.raises(ValueError, match="got a token that its own set does not have"):
        build(N(parent=-1, kind=PROMPT, tokens=[1]), N(parent=0, kind=ACTION, tokens=[5], allowed=[bits(3, 4)]))


@given(rng=seeds())
def test_trees_of_one_batch_share_their_sets(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, task=str(task), grammars=0.5, unusual=0.0) for task in range(3)]
    # Another tree with sets of the first.
    batch = pack([credited(tree, rng) for tree in [*trees, trees[0]]])
    whole = np.concatenate([tree.token for tree in [*trees, trees[0]]])
    wanted = [
        None if place < 0 else tree.allowed_sets[place].tobytes()
        for tree in [*trees, trees[0]]
        for place in tree.allowed.tolist()
    ]
    assert len(batch.allowed_sets) == len({each for each in wanted if each is not None})
    for origin, token, place in zip(batch.origin.tolist(), batch.target.tolist(), batch.allowed.tolist(), strict=True):
        assert token == whole[origin]
        assert wanted[origin] == (None if place < 0 else batch.allowed_sets[place].numpy().tobytes())


def test_columns_of_many_trees_have_the_sets_of_each() -> None:
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, grammars=0.7, task=str(i)) for i in range(3)]
    assert all(len(tree.allowed_sets) for tree in trees)
    columns = join_trees(trees)
    for at, tree in enumerate(trees):
        assert cut_tree(columns, at, tree_record(tree)).equals(tree)


def test_a_random_set_has_its_token() -> None:
    rng = np.random.default_rng(0)
    for token in (0, 7, 8, 1023):
        held = np.unpackbits(np.frombuffer(some_set(rng, token), np.uint8), bitorder="little")
        assert held[token]
