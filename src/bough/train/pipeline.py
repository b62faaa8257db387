"""Rollouts parallel to the update: the trees of the next step grow while the policy learns from this step's trees.

In step k:

    grow k (the first step only)    grow k + 1    sync, observe, save
                                    update k
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from bough.rollout import Deadlines, Rollouts
from bough.rollout.runner import first_error
from bough.tree import Credited, cut_tree, join_trees, tree_record

Result = TypeVar("Result")

UPDATE_S = 24 * 3600.0
"""Deadline of an update, in seconds."""


class PrefetchedRollouts:
    """The trees of the next step's first round, sampled by the policy from before this step's update.

    The update runs in a separate thread and changes the policy. Rollouts continue in the event loop and use the
    engine's own weights. The two do not depend on each other, so their order does not matter. A checkpoint is saved
    when both are done, and contains the trees, because the sampling weights are overwritten.
    """

    def __init__(self) -> None:
        self._grown: Rollouts | None = None

    def take(self) -> Rollouts | None:
        """Return the prefetched trees and clear them; None without any."""
        grown, self._grown = self._grown, None
        return grown

    async def beside(
        self, update: Callable[[], Result], builder: Coroutine[Any, Any, Rollouts], deadlines: Deadlines, *, owner: str
    ) -> Result:
        """Run the update in a thread while trees grow; stores the trees, and returns the update's result.

        Errors of either are raised when both have ended, because a thread cannot be stopped.
        """
        try:
            async with asyncio.TaskGroup() as both:
                growing = both.create_task(builder)
                updating = both.create_task(_threaded(update, deadlines, owner))
        except BaseExceptionGroup as errors:
            error = first_error(errors)
        else:
            self._grown = growing.result()
            return updating.result()
        raise error

    def state(self) -> Mapping[str, Tensor]:
        """The trees, column by column, and their texts as JSON; empty without prefetched trees."""
        if self._grown is None:
            return {}
        trees = self._grown.trees
        words = {
            "trees": [tree_record(tree) for tree in trees],
            "unstarted": dict(self._grown.unstarted),
        }
        encoded = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
        columns = join_trees(trees) | {"words": encoded}
        return {name: torch.as_tensor(np.array(column)) for name, column in columns.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`, bit for bit."""
        self._grown = None
        if not state:
            return
        columns = {name: column.numpy() for name, column in state.items()}
        words = json.loads(columns.pop("words").tobytes())
        trees = [cut_tree(columns, at, record) for at, record in enumerate(words["trees"])]
        self._grown = Rollouts(trees=tuple(trees), unstarted=words["unstarted"])


def newest(credited: Sequence[Credited]) -> int:
    """The newest version of the policy that sampled in some trees; -1 without sampled tokens."""
    return max((int(each.tree.policy_version.max(initial=-1)) for each in credited), default=-1)


async def _threaded(update: Callable[[], Result], deadlines: Deadlines, owner: str) -> Result:
    """The result of `update`, from a thread. When cancelled, it still waits for the end of the update."""
    threads = torch.get_num_threads()

    def work() -> Result:
        # PyTorch resets the number of threads in a new thread.
        torch.set_num_threads(threads)
        return update()

    with deadlines.during(owner=owner, thing="end of the update", deadline_s=UPDATE_S):
        ended = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await asyncio.wait([ended])
            if not ended.cancelled():
                ended.exception()
            raise
