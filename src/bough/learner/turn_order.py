"""The order of optimizer steps for objectives that train one turn of each path at a time."""

from bough.batch import Batch
from bough.needs import TURN_BY_TURN, needs_of
from bough.objective import Objective


def turn_order(batch: Batch, objective: Objective) -> list[int | None]:
    """The numbers of the turns to train, one optimizer step each, the last first; [None] for all turns in one step.

    Paths of two and four turns have 3 2 1 0.

    Raises:
        ValueError: when the objective trains turn by turn and the batch was packed without paths.
    """
    if TURN_BY_TURN not in needs_of(objective):
        return [None]
    if batch.path_index is None:
        raise ValueError("got a batch without paths for an objective on turns; pack it with `paths=True`")
    turns = int(batch.path_index.path_of_turn.bincount().max())
    return [*range(turns - 1, -1, -1)]
