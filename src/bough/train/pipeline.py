"""Growth beside the update: the trees of the next step grow while the policy learns from those of this one.

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
from bough.tree import Credited, Task, Tree, cut_tree, join_trees

Result = TypeVar("Result")

UPDATE_S = 24 * 3600.0
"""How long an update may take before the run counts as stuck."""


class PrefetchedRollouts:
    """The trees of the next step's first round, grown by the policy from before this step's update.

    The update runs in a thread of its own and changes the policy; growth goes on in the event loop and asks the engine,
    whose weights are its own. Neither sees the other, so it does not matter which is done first. A checkpoint is made
    when both are done, and holds the trees: the weights that they were sampled with are no more.
    """

    def __init__(self) -> None:
        self._grown: Rollouts | None = None

    def take(self) -> Rollouts | None:
        """What was grown ahead, once; None when nothing was."""
        grown, self._grown = self._grown, None
        return grown

    async def beside(
        self, update: Callable[[], Result], builder: Coroutine[Any, Any, Rollouts], deadlines: Deadlines, *, owner: str
    ) -> Result:
        """Update in a thread while trees grow; keeps the trees, and returns what the update did.

        What either raises is raised, when both have ended: a thread cannot be stopped.
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
        """The trees, column by column, and their words as JSON; nothing when nothing was grown ahead."""
        if self._grown is None:
            return {}
        trees = self._grown.trees
        words = {
            "trees": [(tree.task.record(), tree.info) for tree in trees],
            "unstarted": dict(self._grown.unstarted),
        }
        said = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
        columns = join_trees(trees) | {"words": said}
        return {name: torch.as_tensor(np.array(column)) for name, column in columns.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave, bit for bit."""
        self._grown = None
        if not state:
            return
        columns = {name: column.numpy() for name, column in state.items()}
        words = json.loads(columns.pop("words").tobytes())
        trees: list[Tree] = [
            cut_tree(columns, at, Task.read(task), info) for at, (task, info) in enumerate(words["trees"])
        ]
        self._grown = Rollouts(trees=tuple(trees), unstarted=words["unstarted"])


def newest(credited: Sequence[Credited]) -> int:
    """The newest version of the policy that sampled in some trees; -1 when none did."""
    return max((int(each.tree.policy_version.max(initial=-1)) for each in credited), default=-1)


async def _threaded(update: Callable[[], Result], deadlines: Deadlines, owner: str) -> Result:
    """What `update` returns, from a thread. When this is cancelled it waits for the end of the update all the same."""
    threads = torch.get_num_threads()

    def work() -> Result:
        # A fresh thread has as many as there are cores, whatever the run asked for.
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
