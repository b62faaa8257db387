"""S3RL: episodes start from snapshots of an oracle's episodes in the first steps."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, Teacher
from bough.needs import ORACLE, Need
from bough.piece import AtLeast, Between, piece
from bough.tree import Rewarded, Task, action_record, read_action


@piece
class Snapshots:
    """S3RL (arXiv 2403.00673): early episodes start at states of oracle episodes, evenly by value; needs an oracle.

    The environment's oracle solves the first `episodes` tasks that are drawn. Every state of its paths, `every`
    actions apart and including the initial one, is a snapshot (`Task.start`). The snapshots are grouped by their value
    into `clusters`, so that the squared distances to the cluster means are minimal (1-D k-means):

        value = discount ** turns to go

        paths of 3 and 1 turns, discount 0.5, 2 clusters:   values 0.125 0.25 | 0.5 0.5

    For `steps` steps of reinforcement, each drawn task is replaced by a snapshot: a random cluster, then a random
    member of it. No snapshot is used twice in a batch while others are left. After that, tasks start at their initial
    state.

    The authors' code (sdpkjc/snapshotrl) takes the values of a trained critic, a snapshot every 10 steps of 10
    episodes, 6 clusters, and the first tenth of the training. It ends episodes 100 steps after the snapshot; here
    `limits.turns` does, which counts the turns after the snapshot.

    Metrics: `snapshots/kept`; `snapshots/used`, of this step's tasks.

    Attributes:
        episodes: Number of oracle episodes, >= 1.
        every: Actions between snapshots, >= 1.
        clusters: Number of clusters, >= 1.
        steps: Reinforcement steps in which episodes start from snapshots, >= 0; None for a tenth of the run's.
        discount: Discount per turn, in (0, 1].
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE})

    episodes: Annotated[int, AtLeast(1)] = 10
    every: Annotated[int, AtLeast(1)] = 1
    clusters: Annotated[int, AtLeast(1)] = 6
    steps: Annotated[int | None, AtLeast(0)] = None
    discount: Annotated[float, Between(0, 1, above=True)] = 0.9

    def build(self, setup: HookSetup) -> "SnapshotsState":
        """Return a state without snapshots."""
        return SnapshotsState(self, setup)


@dataclass(slots=True, kw_only=True)
class SnapshotsData:
    """The state of the hook.

    Attributes:
        ways: The oracle's actions by task, as JSON.
        steps: The number of finished steps.
        drawn: Snapshots in each batch that was drawn but has not arrived: with staleness a step draws the next one.
    """

    ways: list[tuple[Task, list[Any]]] = field(default_factory=list[tuple[Task, list[Any]]])
    steps: int = 0
    drawn: deque[int] = field(default_factory=deque[int])


class SnapshotsState(BatchHook[Snapshots], TaskRewriter):
    """The stored snapshots."""

    def __init__(self, settings: Snapshots, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: SnapshotsData = SnapshotsData()
        self._until = setup.steps // 10 if settings.steps is None else settings.steps
        self._used = 0

    def snapshots(self) -> list[tuple[Task, float]]:
        """The tasks that start at states of the oracle's paths, and their values."""
        settings = self.settings
        return [
            (task.after([*map(read_action, way[:at])]), settings.discount ** (len(way) - at))
            for task, way in self.data.ways
            for at in range(0, len(way), settings.every)
        ]

    async def rewrite(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """Replace each task by a snapshot in the first steps.

        Raises:
            ValueError: when the oracle solves none of the tasks.
        """
        settings = self.settings
        if self.data.steps >= self._until:
            self.data.drawn.append(0)
            return list(tasks)
        known = {task.id for task, _ in self.data.ways}
        for task in tasks:
            if len(self.data.ways) < settings.episodes and task.id not in known and (way := await teacher(task)):
                known.add(task.id)
                self.data.ways.append((task, [*map(action_record, way)]))
        if not self.data.ways:
            raise ValueError(
                f"Snapshots: got no solution of any of {len(tasks)} tasks; need an environment with a method "
                "`plan(state)` that solves them"
            )
        found = self.snapshots()
        label = part(np.asarray([value for _, value in found]), settings.clusters)
        rng = np.random.default_rng(seed)
        left = list[int]()
        begun: list[Task] = []
        for _ in tasks:
            left = left or list(range(len(found)))
            cluster = rng.choice(np.unique(label[left]))
            member = int(rng.choice([at for at in left if label[at] == cluster]))
            left.remove(member)
            begun.append(found[member][0])
        self.data.drawn.append(len(begun))
        return begun

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Count the snapshots of the batch, and return it unchanged."""
        self._used += self.data.drawn.popleft() if self.data.drawn else 0
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        used, self._used = self._used, 0
        self.data.steps += 1
        return {"snapshots/used": float(used), "snapshots/kept": float(len(self.snapshots()))}


def part(value: NDArray[np.float64], clusters: int) -> NDArray[np.int64]:
    """[n] int64: the cluster of each of n values, 0 for the lowest, by exact 1-D k-means.

    Clusters are intervals of the sorted values: the best k clusters of the first j values end with an interval that
    follows the best k - 1 clusters of the values before it. There are at most as many clusters as distinct values.
    """
    kinds, which = np.unique(value, return_inverse=True)
    weight = np.bincount(which).astype(np.float64)
    n, k = len(kinds), min(clusters, len(kinds))
    mass, total, square = (np.concatenate([[0.0], np.cumsum(weight * kinds**power)]) for power in (0, 1, 2))

    def spread(first: int, end: int) -> float:
        """The squared distances of an interval to its mean."""
        inside = total[end] - total[first]
        return float(square[end] - square[first] - inside**2 / (mass[end] - mass[first]))

    best = np.full((k + 1, n + 1), np.inf)
    cut = np.zeros((k + 1, n + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for count in range(1, k + 1):
        for end in range(count, n + 1):
            costs = [best[count - 1, first] + spread(first, end) for first in range(count - 1, end)]
            cut[count, end] = count - 1 + int(np.argmin(costs))
            best[count, end] = min(costs)
    label, end = np.zeros(n, dtype=np.int64), n
    for count in range(k, 0, -1):
        label[cut[count, end] : end] = count - 1
        end = int(cut[count, end])
    return label[which]
