"""The trained tokens of a batch path by path, for losses over whole turns or paths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.tree import (
    Credited,
    Floats,
    Ints,
    PathView,
    Ternary,
    TruncatedBy,
    included,
    join,
    join_advantages,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathIndex:
    """The trained tokens of P paths with K turns, path by path: E of them, a shared token once for each path.

    Attributes:
        trained: [E] int64, index among the batch's trained tokens.
        path: [E] int64, ascending from 0.
        turn: [E] int64, ascending from 0: index among all turns of all paths.
        advantage: [E] float32, the path's advantage of the token.
        task: [P] int64, the task of each path.
        context_id: [K] int64; turns with the same number have exactly the same context.
        path_of_turn: [K] int64.
        response_id: [K] int64; turns with the same number have the same tokens after exactly the same context.
        visits: [K] float32, visit count of the state after the turn in a search; 0 without a count.
        end: [P] int64: 1 for a path that ended with success, -1 without, 0 where the explorer stopped.
    """

    trained: Int[Tensor, " E"]
    path: Int[Tensor, " E"]
    turn: Int[Tensor, " E"]
    advantage: Float[Tensor, " E"]
    task: Int[Tensor, " P"]
    context_id: Int[Tensor, " K"]
    path_of_turn: Int[Tensor, " K"]
    response_id: Int[Tensor, " K"]
    visits: Float[Tensor, " K"]
    end: Int[Tensor, " P"]

    @property
    def inverse_length(self) -> Float[Tensor, " E"]:
        """[E] float64: one over the number of trained tokens of the path."""
        return 1.0 / self.path.bincount(minlength=len(self.task))[self.path].double()

    def take(self, trained: Int[Tensor, " m"]) -> "PathIndex":
        """Returns the paths of some trees, all of whose trained tokens are among `trained`, numbered as in it."""
        place = torch.full((int(self.trained.max()) + 1 if len(self.trained) else 0,), -1, device=self.trained.device)
        inside = trained[trained < len(place)]
        place[inside] = torch.arange(len(trained), device=place.device)[trained < len(place)]
        kept = place[self.trained] >= 0
        (paths, path), (turns, turn) = _numbered(self.path[kept]), _numbered(self.turn[kept])
        return PathIndex(
            trained=place[self.trained[kept]],
            path=path,
            turn=turn,
            advantage=self.advantage[kept],
            task=self.task[paths],
            context_id=self.context_id[turns],
            path_of_turn=torch.searchsorted(paths, self.path_of_turn[turns]),
            response_id=self.response_id[turns],
            visits=self.visits[turns],
            end=self.end[paths],
        )

    def to(self, device: torch.device | str) -> "PathIndex":
        """Returns the same index on another device."""
        return PathIndex(**{name: getattr(self, name).to(device) for name in self.__slots__})


def _numbered(ids: Int[Tensor, " n"]) -> tuple[Int[Tensor, " k"], Int[Tensor, " n"]]:
    """Returns the distinct values of ascending ids, and for each id the index of its value."""
    new = torch.cat([ids.new_ones(min(1, len(ids))), (ids.diff() > 0).to(ids.dtype)])
    return ids[new > 0], new.cumsum(0) - 1


def index_paths(credited: Sequence[Credited], view: PathView, origin: Ints) -> PathIndex:
    """Computes the path index of a batch.

    Args:
        credited: The trees.
        view: `path_view` of their `rewarded`.
        origin: [M] int64, index of each trained token among all tokens of the trees.
    """
    tokens = view.path_tokens
    slot = np.full(int(view.lengths.sum()), -1, dtype=np.int64)
    slot[origin] = np.arange(len(origin))
    stays = (slot[tokens.token] >= 0) & included(credited, view)
    token, step = tokens.token[stays], tokens.step[stays]
    advantage = join_advantages(credited)[stays].astype(np.float32)
    turns, turn = np.unique(step, return_inverse=True)
    paths, path = np.unique(view.path[step], return_inverse=True)
    context = _context_ids(view)
    return PathIndex(
        trained=torch.as_tensor(slot[token]),
        path=torch.as_tensor(path),
        turn=torch.as_tensor(turn),
        advantage=torch.as_tensor(advantage),
        task=torch.as_tensor(view.task[paths]),
        context_id=torch.as_tensor(context[turns]),
        path_of_turn=torch.as_tensor(np.searchsorted(paths, view.path[turns])),
        response_id=torch.as_tensor(_response_ids(view, context)[turns]),
        visits=torch.as_tensor(_visits(view)[turns]),
        end=torch.as_tensor(_ends(view)[paths]),
    )


def _ends(view: PathView) -> Ints:
    """[P] int64: 1 success, -1 an end without it, 0 where the explorer stopped; see `PathIndex.end`."""
    success = join(view.rewarded, "success")[view.leaf] == Ternary.YES
    open_ends = np.isin(
        join(view.rewarded, "truncated_by")[view.leaf], (TruncatedBy.EXPLORER, TruncatedBy.NOT_EXECUTED)
    )
    return np.where(success, 1, np.where(open_ends, 0, -1)).astype(np.int64)


def _visits(view: PathView) -> Floats:
    """[S] float32: the visit count of each turn."""
    return join(view.rewarded, "visits")[view.node].astype(np.float32)


def _context_ids(view: PathView) -> Ints:
    """[S] int64: the node before each turn; all first turns of a task share one."""
    root = view.offset[:-1][view.tree[view.path]]
    first = np.full(int(view.task.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[view.task[::-1]] = view.offset[:-1][view.tree[::-1]]
    return np.where(view.place == root, first[view.task[view.path]], view.place)


def _response_ids(view: PathView, context: Ints) -> Ints:
    """[S] int64: equal for the same tokens sampled in the same context, compared token by token."""
    first_at, turn = np.unique(view.node, return_index=True, return_inverse=True)[1:]
    token, length = join(view.rewarded, "token").astype(np.int64), view.tokens[first_at]
    kinds, longest = int(token.max(initial=0)) + 1, int(length.max(initial=0))
    group = np.unique(context[first_at] * (longest + 1) + length, return_inverse=True)[1]
    left, fresh = np.arange(len(first_at)), len(first_at)
    for place in range(longest):
        _, which, crowd = np.unique(group[left], return_inverse=True, return_counts=True)
        unsettled = (crowd[which] > 1) & (length[left] > place)
        left, which = left[unsettled], which[unsettled]
        if not len(left):
            break
        written = token[view.token_at(first_at[left], place)]
        group[left] = fresh + np.unique(which * kinds + written, return_inverse=True)[1]
        fresh += len(left)
    return group[turn]
