"""Packing of credited trees to a batch: each trained token once, after exactly the context of the engine.

From credit to `loss.backward()` an advantage passes five types, one function between each two:

    Credited      each path's advantage at each of its tokens           credit rules
    Batch         positive and negative advantage of each trained token `pack`, here
    MiniBatch     the rows of one optimizer step                        `Batch.minibatches`
    LossInputs    the columns of an objective, with the loss weights    `bough.learner.loss_inputs`
    Loss          a scalar with a gradient                              objectives
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bough.batch.batch import Batch, columns_of
from bough.batch.packed_tree import PackedTree, count_paths, trained_nodes
from bough.batch.path_index import index_paths
from bough.tree import (
    UNRESTRICTED,
    Credited,
    Floats,
    Ints,
    PathView,
    Rewarded,
    Source,
    TokenSets,
    Tree,
    count_path_tokens,
    included_leaves,
    no_token_sets,
    path_view,
    token_advantages,
)


def pack(
    credited: Sequence[Credited],
    *,
    paths: bool = False,
    experts: Sequence[Tree] = (),
    counted_only: Sequence[Credited] = (),
) -> Batch:
    """Packs every sampled token on an included counted path, with its columns.

    A row is a text: it starts at the root or at an `EDIT` and follows one branch to its last trained token. A token
    in several rows is trained in the first.

    Args:
        credited: The trees.
        paths: Whether to compute the path view too (`Batch.path_index`).
        experts: Demonstrations, packed with the trees: the actions of a teacher get an advantage of 1.
        counted_only: Trees whose included paths count in the mean of the loss, and are not packed.

    Raises:
        ValueError: when a trained token has no token before it.
    """
    both = [*credited, *map(_demonstration, experts)]
    view = path_view([each.rewarded for each in both])
    allowed, sets = _join_sets([each.tree for each in both])
    trees = _packed_trees(both, view, len(credited), allowed)
    heads = sorted({name for tree in trees for name in tree.value_targets})
    columns: dict[str, Any] = {
        name: torch.as_tensor(_join(about["dtype"], [about["derive"](tree) for tree in trees]))
        for name, about in columns_of(Batch)
    }
    row = np.concatenate([[0], np.cumsum(_join(np.int64, [tree.row_lengths for tree in trees]))])
    tokens = _join(np.int64, [tree.tree.token[tree.row_tokens] for tree in trees])
    return Batch(
        tokens=torch.as_tensor(tokens),
        position=torch.as_tensor(np.arange(row[-1]) - np.repeat(row[:-1], np.diff(row))),
        tree=torch.as_tensor(np.repeat(np.arange(len(trees)), [len(tree.rows) for tree in trees])),
        row=torch.as_tensor(row),
        at=torch.as_tensor(np.flatnonzero(_join(np.bool_, [tree.trained for tree in trees]))),
        value_targets={name: _of_head(name, [(tree, tree.value_targets) for tree in trees]) for name in heads},
        old_values={name: _of_head(name, [(tree, tree.old_values) for tree in trees]) for name in heads},
        allowed_sets=torch.as_tensor(sets),
        path_index=index_paths(both, view, columns["origin"].numpy()) if paths else None,
        counted_only=count_paths(counted_only, {id(each.tree): each.trains for each in trees}),
        **columns,
    )


def pack_demonstrations(trees: Sequence[Tree]) -> Batch:
    """Packs a teacher's action tokens on counted paths, with an advantage of 1 and a rollout log-probability of 0.

    Raises:
        ValueError: when an action has no token before it.
    """
    return pack([], experts=trees)


def _demonstration(tree: Tree) -> Credited:
    """Returns a demonstration as a credited tree: an advantage of 1 everywhere."""
    return Credited(rewarded=Rewarded(tree=tree, channels={}), path_advantage=np.ones(count_path_tokens(tree)))


def _packed_trees(
    credited: Sequence[Credited], view: PathView, sampled: int, allowed: Sequence[Ints]
) -> list[PackedTree]:
    """Returns the inputs of the columns; trees from number `sampled` on are demonstrations."""
    positive, negative = token_advantages(credited, view)
    # A teacher's tokens are not sampled; in a demonstration they have an advantage of 1.
    end = np.cumsum([0, *(len(each.tree.token) for each in credited)]).tolist()
    positive[end[sampled] :] = 1.0
    ends = [included_leaves(each) for each in credited]
    sources = [Source.SAMPLED if i < sampled else Source.TEACHER for i in range(len(credited))]
    trains = [
        trained_nodes(each.tree, leaves, source) for each, leaves, source in zip(credited, ends, sources, strict=True)
    ]
    versions = [each.tree.policy_version[nodes] for each, nodes in zip(credited, trains, strict=True)]
    newest = max((int(version.max(initial=-1)) for version in versions), default=-1)
    return [
        PackedTree(
            tree=each.tree,
            ends=ends[i],
            trains=trains[i],
            is_demonstration=i >= sampled,
            positive=positive[end[i] : end[i + 1]],
            negative=negative[end[i] : end[i + 1]],
            value_targets=each.value_targets,
            old_values={name: each.rewarded.estimates[name] for name in each.value_targets},
            first_token=end[i],
            allowed=allowed[i],
            newest=newest,
        )
        for i, each in enumerate(credited)
    ]


def _join_sets(trees: Sequence[Tree]) -> tuple[list[Ints], TokenSets]:
    """Returns the indices of each tree's tokens, [T] int64, among the sets of all trees; and these sets, each once."""
    held = [tree.allowed_sets for tree in trees if len(tree.allowed_sets)]
    if not held:
        return [tree.allowed.astype(np.int64) for tree in trees], no_token_sets()
    sets, place = np.unique(np.concatenate(held), axis=0, return_inverse=True)
    first = np.cumsum([0, *(len(tree.allowed_sets) for tree in trees)])
    # The last entry stands for -1.
    places = [np.append(place[begin:end], UNRESTRICTED) for begin, end in pairwise(first.tolist())]
    return [each[tree.allowed] for each, tree in zip(places, trees, strict=True)], sets


def _of_head(name: str, trees: Sequence[tuple[PackedTree, Mapping[str, Floats]]]) -> torch.Tensor:
    """[M] float32: a column of a value head; nan on trees without it."""
    columns = [each[name][tree.token] if name in each else np.full(len(tree.token), np.nan) for tree, each in trees]
    return torch.as_tensor(_join(np.float32, columns))


def _join(dtype: Any, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Joins the parts end to end, after an empty one, so that zero parts give a column of the right dtype."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)
