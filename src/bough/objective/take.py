"""Selection of tokens from the inputs of an objective, path ids included."""

from dataclasses import replace

from jaxtyping import Bool, Int

from bough.lazy import Tensor
from bough.objective.inputs import LossInputs, PathIds


def take(columns: LossInputs, mask: Bool[Tensor, " M"]) -> LossInputs:
    """Selects the tokens in `mask`, in either view. Weights stay those of the whole optimizer batch.

    In the path view, paths and turns without a token left are removed, and the others are renumbered: paths
    0 0 1 2 2 without the third token become 0 0 1 1.
    """
    ids = None if columns.path_ids is None else _take_ids(columns.path_ids, mask)
    return replace(columns.select(mask), path_ids=ids)


def _take_ids(path_ids: PathIds, mask: Bool[Tensor, " M"]) -> PathIds:
    paths, path = _numbered(path_ids.path[mask], len(path_ids.task))
    turns, turn = _numbered(path_ids.turn[mask], len(path_ids.path_of_turn))
    place = path_ids.task.new_zeros(len(path_ids.task))
    place[paths] = place.new_ones(len(paths)).cumsum(0) - 1
    return PathIds(
        path=path,
        turn=turn,
        task=path_ids.task[paths],
        context_id=path_ids.context_id[turns],
        path_of_turn=place[path_ids.path_of_turn[turns]],
        response_id=None if path_ids.response_id is None else path_ids.response_id[turns],
        visits=None if path_ids.visits is None else path_ids.visits[turns],
        end=None if path_ids.end is None else path_ids.end[paths],
    )


def _numbered(ids: Int[Tensor, " m"], count: int) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """Returns the ids of 0 to count - 1 that occur, and for each id its index among them."""
    there = ids.bincount(minlength=count) > 0
    return there.nonzero()[:, 0], (there.cumsum(0) - 1)[ids]
