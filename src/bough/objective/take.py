"""Some of the columns, for objectives that hand them on to others."""

from dataclasses import replace

from jaxtyping import Bool, Int

from bough.lazy import Tensor
from bough.objective import Columns, Walk

_OF_TOKENS = ("logprob", "behaviour", "gain", "lose", "share", "entropy", "reference", "old", "usual_entropy", "expert")


def take(columns: Columns, mask: Bool[Tensor, " M"]) -> Columns:
    """The tokens in `mask`, in either view. Shares stay as they are: they are of the whole optimizer batch.

    In the path view, turns and paths of which nothing is left are gone, and the others are numbered anew: of paths
    0 0 1 2 2, without the third token, 0 0 1 1 are left.
    """
    some = {name: column[mask] for name in _OF_TOKENS if (column := getattr(columns, name)) is not None}
    return replace(
        columns,
        **some,
        values={
            name: replace(head, value=head.value[mask], old=head.old[mask], goal=head.goal[mask])
            for name, head in columns.values.items()
        },
        walk=None if columns.walk is None else _take_walk(columns.walk, mask),
    )


def _take_walk(walk: Walk, mask: Bool[Tensor, " M"]) -> Walk:
    paths, path = _numbered(walk.path[mask], len(walk.task))
    turns, turn = _numbered(walk.turn[mask], len(walk.path_of_turn))
    place = walk.task.new_zeros(len(walk.task))
    place[paths] = place.new_ones(len(paths)).cumsum(0) - 1
    return Walk(
        path=path,
        turn=turn,
        task=walk.task[paths],
        fork=walk.fork[turns],
        path_of_turn=place[walk.path_of_turn[turns]],
        answer=None if walk.answer is None else walk.answer[turns],
        visits=None if walk.visits is None else walk.visits[turns],
        end=None if walk.end is None else walk.end[paths],
    )


def _numbered(ids: Int[Tensor, " m"], count: int) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """Which of 0 to count - 1 occur, and for each id which of those it is."""
    there = ids.bincount(minlength=count) > 0
    return there.nonzero()[:, 0], (there.cumsum(0) - 1)[ids]
