"""From advantages of turns to the credit of tokens: the one helper that every credit rule ends with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bough.tree.path_view import PathView, path_view
from bough.tree.stages import Credited, Rewarded
from bough.tree.tree import Floats, Ints
from bough.tree.walk import sum_at

NO_TARGETS: Mapping[str, Floats] = {}


def spread_turns(view: PathView, advantage: Floats, value_targets: Mapping[str, Floats] = NO_TARGETS) -> list[Credited]:
    """Give every trained token of a turn the advantages that the paths through it have there.

    Args:
        view: The batch by turns, or its `by_node` or `by_fork`.
        advantage: [S].
        value_targets: By the name of a value head, [T] over the tokens of the batch: see `Credited.value_targets`.
    """
    if advantage.shape != view.path.shape:
        raise ValueError(f"spread_turns: got shape {advantage.shape}; need one for each of {len(view.path)} turns")
    at_piece = advantage[view.piece_step]
    positive, negative = (_mean_at(view, view.piece, side, len(view.through)) for side in _sides(at_piece))
    lengths = view.lengths
    return _cut(
        view, np.repeat(positive, lengths), np.repeat(negative, lengths), value_targets, _by_turn(view, advantage)
    )


def spread_tokens(
    view: PathView, advantage: Floats, value_targets: Mapping[str, Floats] = NO_TARGETS
) -> list[Credited]:
    """Give every trained token the advantages that the paths through it have there.

    Args:
        view: The batch.
        advantage: [E], in the order of `view.words`.
        value_targets: As in `spread_turns`.
    """
    token = view.path_tokens.token
    if advantage.shape != token.shape:
        raise ValueError(f"spread_tokens: got shape {advantage.shape}; need one for each of {len(token)} tokens")
    positive, negative = (_mean_at(view, token, side, len(view.sampled)) for side in _sides(advantage))
    return _cut(view, positive, negative, value_targets, [None] * len(view.rewarded))


def mean_over_paths(view: PathView, token: Ints, value: Floats) -> Floats:
    """[T]: at each token of the batch the mean of what the paths through it say, nan where none says anything.

    A squared error to the mean of several goals has the gradient of the mean of the squared errors to each.

    Args:
        view: The batch.
        token: [n] int64, which token of the batch.
        value: [n], what some path says of it.
    """
    return _mean_at(view, token, value, len(view.sampled), nothing=np.nan)


def spread_paths(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Give every trained token of a tree the advantages of the counted paths through it.

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
    """Give every trained token of a tree the advantage of its node: the paths through it agree.

    Args:
        rewarded: The tree.
        advantage: [N]; read at `ACTION` nodes only.
    """
    view = path_view([rewarded]).by_node
    return spread_turns(view, advantage[view.node])[0]


def exclude_leaves(credited: Credited, leaves: Ints) -> Credited:
    """The same credit without some paths: what they gave to tokens that they share with others is taken back.

    Args:
        credited: The tree.
        leaves: The leaves of the paths; those that are left out already stay so.
    """
    view = path_view([credited.rewarded])
    out = np.union1d(credited.excluded_leaves, leaves).astype(np.int64)
    stays = ~np.isin(view.leaf, out)[view.path]
    if credited.turn_advantage is None:
        # The paths through a token are taken to agree about it.
        return replace(credited, excluded_leaves=out)
    stays = stays[view.piece_step]
    node, advantage = view.piece[stays], credited.turn_advantage[view.piece_step][stays].astype(np.float64)
    through = np.maximum(np.bincount(node, minlength=len(view.through)), 1)
    sides = [sum_at(node, side, len(through)) / through for side in _sides(advantage)]
    trained = credited.tree.sampled
    positive, negative = (np.where(trained, np.repeat(side, view.lengths), 0.0).astype(np.float32) for side in sides)
    return replace(credited, positive=positive, negative=negative, excluded_leaves=out)


def _mean_at(view: PathView, index: Ints, value: Floats, count: int, *, nothing: float = 0.0) -> Floats:
    """[count]: the mean of `value` over equal `index`, which only shared turns bring about; or `nothing`."""
    if not view.shared:
        mean = np.zeros(count, dtype=np.float32)
        if nothing:
            mean.fill(nothing)
        mean[index] = value
        return mean
    number = np.bincount(index, minlength=count)
    return np.where(number > 0, sum_at(index, value, count) / np.maximum(number, 1), nothing)


def _by_turn(view: PathView, advantage: Floats) -> list[Floats | None]:
    """For each tree the advantage of each turn; None when parts of one turn have different advantages."""
    begins = np.diff(view.whole, prepend=-1) > 0
    turn = np.cumsum(begins) - 1
    path, turn_advantage = view.path[begins], advantage[begins]
    bounds = np.searchsorted(view.tree[path], np.arange(1, len(view.rewarded)))
    differs = np.bincount(view.tree[view.path[advantage != turn_advantage[turn]]], minlength=len(view.rewarded)) > 0
    return [
        None if mixed else own for mixed, own in zip(differs.tolist(), np.split(turn_advantage, bounds), strict=False)
    ]


def _sides(advantage: Floats) -> tuple[Floats, Floats]:
    """What gains and what loses."""
    return np.maximum(advantage, 0.0), np.minimum(advantage, 0.0)


def _cut(
    view: PathView,
    positive: Floats,
    negative: Floats,
    value_targets: Mapping[str, Floats],
    turn_advantage: Sequence[Floats | None],
) -> list[Credited]:
    """Cut columns over the tokens of the batch into trees; what is not trained gets 0, or nan for a goal."""
    trained = view.sampled & np.repeat(view.through > 0, view.lengths)
    # `+ 0.0` turns a minus zero into a zero, so that equal credits are equal bit for bit.
    positive, negative = (
        np.where(trained, side, 0.0).astype(np.float32) + np.float32(0.0) for side in (positive, negative)
    )
    aims = {name: np.where(trained, goal, np.nan).astype(np.float32) for name, goal in value_targets.items()}
    end = np.cumsum([0, *(len(each.tree.token) for each in view.rewarded)]).tolist()
    return [
        Credited(
            rewarded=each,
            positive=positive[end[i] : end[i + 1]],
            negative=negative[end[i] : end[i + 1]],
            value_targets={name: goal[end[i] : end[i + 1]] for name, goal in aims.items()},
            turn_advantage=None if own is None else own.astype(np.float32),
        )
        for i, (each, own) in enumerate(zip(view.rewarded, turn_advantage, strict=True))
    ]
