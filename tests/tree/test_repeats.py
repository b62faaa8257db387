"""Labels that occur again below themselves, against a walk over every path."""

import numpy as np
from hypothesis import given
from tests.trees import random_tree, seeds

from bough.tree import leaves, path
from bough.tree.repeats import largest_above, repeated
from bough.tree.walk import last_where


@given(seeds())
def test_repeated_labels_and_the_largest_value_above(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    node = np.flatnonzero(rng.random(tree.nodes) < 0.7)
    label, value = rng.integers(-2, 3, len(node)), rng.normal(size=len(node))
    place = {own: row for row, own in enumerate(node.tolist())}
    above = [
        [
            place[other]
            for other in path(tree, own).tolist()[:-1]
            if other in place and label[place[other]] == label[row]
        ]
        for own, row in place.items()
    ]
    assert repeated(tree, node, label).tolist() == [bool(rows) for rows in above]
    assert largest_above(tree, node, label, value).tolist() == [max([0.0, *value[rows]]) for rows in above]


@given(seeds())
def test_the_last_node_of_a_kind_above(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    wanted = rng.random(tree.nodes) < 0.4
    for leaf in leaves(tree).tolist():
        newest = 0
        for node in path(tree, leaf).tolist():
            newest = node if wanted[node] else newest
            assert last_where(tree, wanted)[node] == newest
