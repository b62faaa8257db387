"""From advantages of turns to the credit of tokens: the one helper that every credit rule ends with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bough.tree.stages import Credited, Rewarded
from bough.tree.steps import Steps, steps
from bough.tree.tree import Floats, Ints
from bough.tree.walk import sum_at

NO_GOALS: Mapping[str, Floats] = {}


def spread_steps(view: Steps, advantage: Floats, goals: Mapping[str, Floats] = NO_GOALS) -> list[Credited]:
    """Give every trained token of a turn the advantages that the paths through it have there.

    Args:
        view: The batch by turns, or its `by_node` or `by_fork`.
        advantage: [S].
        goals: By the name of a value head, [T] over the tokens of the batch: see `Credited.goals`.
    """
    if advantage.shape != view.path.shape:
        raise ValueError(f"spread_steps: got shape {advantage.shape}; need one for each of {len(view.path)} turns")
    at_piece = advantage[view.piece_step]
    gain, lose = (_mean_at(view, view.piece, side, len(view.through)) for side in _sides(at_piece))
    lengths = view.lengths
    return _cut(view, np.repeat(gain, lengths), np.repeat(lose, lengths), goals, _by_turn(view, advantage))


def spread_words(view: Steps, advantage: Floats, goals: Mapping[str, Floats] = NO_GOALS) -> list[Credited]:
    """Give every trained token the advantages that the paths through it have there.

    Args:
        view: The batch.
        advantage: [E], in the order of `view.words`.
        goals: As in `spread_steps`.
    """
    token = view.words.token
    if advantage.shape != token.shape:
        raise ValueError(f"spread_words: got shape {advantage.shape}; need one for each of {len(token)} tokens")
    gain, lose = (_mean_at(view, token, side, len(view.sampled)) for side in _sides(advantage))
    return _cut(view, gain, lose, goals, [None] * len(view.rewarded))


def mean_over_paths(view: Steps, token: Ints, value: Floats) -> Floats:
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
    view = steps([rewarded])
    if advantage.shape != view.leaf.shape:
        raise ValueError(
            f"spread_paths: got advantages of shape {advantage.shape}; need one for each of {view.paths} paths"
        )
    return spread_steps(view, advantage[view.path])[0]


def spread_nodes(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Give every trained token of a tree the advantage of its node: the paths through it agree.

    Args:
        rewarded: The tree.
        advantage: [N]; read at `ACTION` nodes only.
    """
    view = steps([rewarded]).by_node
    return spread_steps(view, advantage[view.node])[0]


def leave_out(credited: Credited, leaves: Ints) -> Credited:
    """The same credit without some paths: what they gave to tokens that they share with others is taken back.

    Args:
        credited: The tree.
        leaves: The leaves of the paths; those that are left out already stay so.
    """
    view = steps([credited.rewarded])
    out = np.union1d(credited.left_out, leaves).astype(np.int64)
    stays = ~np.isin(view.leaf, out)[view.path]
    if credited.by_turn is None:
        # The paths through a token are taken to agree about it.
        return replace(credited, left_out=out)
    stays = stays[view.piece_step]
    node, advantage = view.piece[stays], credited.by_turn[view.piece_step][stays].astype(np.float64)
    through = np.maximum(np.bincount(node, minlength=len(view.through)), 1)
    sides = [sum_at(node, side, len(through)) / through for side in _sides(advantage)]
    trained = credited.tree.sampled
    gain, lose = (np.where(trained, np.repeat(side, view.lengths), 0.0).astype(np.float32) for side in sides)
    return replace(credited, gain=gain, lose=lose, left_out=out)


def _mean_at(view: Steps, index: Ints, value: Floats, count: int, *, nothing: float = 0.0) -> Floats:
    """[count]: the mean of `value` over equal `index`, which only shared turns bring about; or `nothing`."""
    if not view.shared:
        mean = np.zeros(count, dtype=np.float32)
        if nothing:
            mean.fill(nothing)
        mean[index] = value
        return mean
    number = np.bincount(index, minlength=count)
    return np.where(number > 0, sum_at(index, value, count) / np.maximum(number, 1), nothing)


def _by_turn(view: Steps, advantage: Floats) -> list[Floats | None]:
    """For each tree the advantage of each turn; None when parts of one turn have different advantages."""
    begins = np.diff(view.whole, prepend=-1) > 0
    turn = np.cumsum(begins) - 1
    path, by_turn = view.path[begins], advantage[begins]
    bounds = np.searchsorted(view.tree[path], np.arange(1, len(view.rewarded)))
    differs = np.bincount(view.tree[view.path[advantage != by_turn[turn]]], minlength=len(view.rewarded)) > 0
    return [None if mixed else own for mixed, own in zip(differs.tolist(), np.split(by_turn, bounds), strict=False)]


def _sides(advantage: Floats) -> tuple[Floats, Floats]:
    """What gains and what loses."""
    return np.maximum(advantage, 0.0), np.minimum(advantage, 0.0)


def _cut(
    view: Steps, gain: Floats, lose: Floats, goals: Mapping[str, Floats], by_turn: Sequence[Floats | None]
) -> list[Credited]:
    """Cut columns over the tokens of the batch into trees; what is not trained gets 0, or nan for a goal."""
    trained = view.sampled & np.repeat(view.through > 0, view.lengths)
    # `+ 0.0` turns a minus zero into a zero, so that equal credits are equal bit for bit.
    gain, lose = (np.where(trained, side, 0.0).astype(np.float32) + np.float32(0.0) for side in (gain, lose))
    aims = {name: np.where(trained, goal, np.nan).astype(np.float32) for name, goal in goals.items()}
    end = np.cumsum([0, *(len(each.tree.token) for each in view.rewarded)]).tolist()
    return [
        Credited(
            rewarded=each,
            gain=gain[end[i] : end[i + 1]],
            lose=lose[end[i] : end[i + 1]],
            goals={name: goal[end[i] : end[i + 1]] for name, goal in aims.items()},
            by_turn=None if own is None else own.astype(np.float32),
        )
        for i, (each, own) in enumerate(zip(view.rewarded, by_turn, strict=True))
    ]
