"""Conversion of advantages of turns, paths or nodes to `Credited`, the last step of credit rules."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bough.tree.credited import Credited, mean_at
from bough.tree.path_view import PathView, path_view
from bough.tree.stages import Rewarded
from bough.tree.tree import Floats, Ints

NO_TARGETS: Mapping[str, Floats] = {}


def spread_turns(view: PathView, advantage: Floats, value_targets: Mapping[str, Floats] = NO_TARGETS) -> list[Credited]:
    """Assigns to every token of a turn the advantage of the turn.

    Args:
        view: The batch by turns, or its `by_node` or `by_fork`.
        advantage: [S].
        value_targets: By the name of a value head, [T] over the tokens of the batch: see `Credited.value_targets`.
    """
    if advantage.shape != view.path.shape:
        raise ValueError(f"spread_turns: got shape {advantage.shape}; need one for each of {len(view.path)} turns")
    return spread_tokens(view, advantage[view.path_tokens.step], value_targets)


def spread_tokens(
    view: PathView, advantage: Floats, value_targets: Mapping[str, Floats] = NO_TARGETS
) -> list[Credited]:
    """Assigns advantages to the tokens of each path.

    Args:
        view: The batch.
        advantage: [E], in the order of `view.path_tokens`.
        value_targets: As in `spread_turns`.
    """
    token, step = view.path_tokens.token, view.path_tokens.step
    if advantage.shape != token.shape:
        raise ValueError(f"spread_tokens: got shape {advantage.shape}; need one for each of {len(token)} tokens")
    # `+ 0.0` turns minus zero into zero, so equal credits are equal bit for bit.
    of_entries = advantage.astype(np.float64) + 0.0
    trained = view.sampled & np.repeat(view.through > 0, view.lengths)
    of_tokens = {name: np.where(trained, each, np.nan).astype(np.float32) for name, each in value_targets.items()}
    tree = np.arange(len(view.rewarded) + 1)
    entry = np.searchsorted(view.tree[view.path[step]], tree).tolist()
    end = np.cumsum([0, *(len(each.tree.token) for each in view.rewarded)]).tolist()
    return [
        Credited(
            rewarded=each,
            path_advantage=of_entries[entry[i] : entry[i + 1]],
            value_targets={name: target[end[i] : end[i + 1]] for name, target in of_tokens.items()},
        )
        for i, each in enumerate(view.rewarded)
    ]


def mean_over_paths(view: PathView, token: Ints, value: Floats) -> Floats:
    """[T]: the mean of `value` at each token of the batch, over the paths through it; nan without a value.

    A squared error to the mean of several targets has the gradient of the mean of the squared errors to each.

    Args:
        view: The batch.
        token: [n] int64, index of a token of the batch.
        value: [n], the value of a path at this token.
    """
    return mean_at(view, token, value, nothing=np.nan)


def spread_paths(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Assigns to every token of a path the advantage of the path.

    Args:
        rewarded: The tree.
        advantage: [P], in the order of `counted(tree)`.
    """
    view = path_view([rewarded])
    if advantage.shape != view.leaf.shape:
        raise ValueError(
            f"spread_paths: got advantages of shape {advantage.shape}; need one for each of {view.paths} paths"
        )
    return spread_turns(view, advantage[view.path])[0]


def spread_nodes(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Assigns to every token of a node the advantage of the node, the same on all paths through it.

    Args:
        rewarded: The tree.
        advantage: [N]; used at `ACTION` nodes only.
    """
    view = path_view([rewarded]).by_node
    return spread_turns(view, advantage[view.node])[0]


def exclude_leaves(credited: Credited, leaves: Ints) -> Credited:
    """Returns the same credit with more paths excluded.

    Args:
        credited: The tree.
        leaves: The leaves of the paths, in addition to those already excluded.
    """
    return replace(credited, excluded_leaves=np.union1d(credited.excluded_leaves, leaves).astype(np.int64))
