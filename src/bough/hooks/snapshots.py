"""A teacher's way as places to begin from, while the policy is young."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bough.tree import Rewarded, Task
from bough.tree.needs import ORACLE, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """S3RL (arXiv 2403.00673): at first, episodes begin on a teacher's way, far and near evenly; needs an oracle.

    The environment's oracle plays the first `episodes` tasks that are drawn, and every place on its way, `every`
    actions apart and the beginning among them, is a snapshot (`Task.start`). By what they are worth to the teacher they
    are parted into `clusters`, so that the squared distances to the means of the clusters are least (1-D k-means):

        value = discount ** turns to go

        ways of 3 and 1 turns, discount 0.5, 2 clusters:   values 0.125 0.25 | 0.5 0.5

    For `steps` steps, each task that is drawn is replaced by a snapshot: a cluster at random, then one of its members
    at random, none twice in a batch while there are others. After that, tasks begin at their beginning.

    The authors' code (sdpkjc/snapshotrl) takes the values of a trained critic, a snapshot every 10 steps of 10
    episodes, 6 clusters, and the first tenth of the training. It ends episodes 100 steps after the snapshot; here
    `limits.turns` does, which counts what comes after it.

    Metrics: `snapshots/kept`; `snapshots/used`, of this step's tasks.

    Attributes:
        episodes: Ways of the teacher, >= 1.
        every: Actions between snapshots, >= 1.
        clusters: >= 1.
        steps: Steps of reinforcement in which episodes begin from snapshots, >= 0.
        discount: Of a turn, in (0, 1].
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE})

    episodes: int = 10
    every: int = 1
    clusters: int = 6
    steps: int = 10
    discount: float = 0.9

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("every", 1), ("clusters", 1), ("steps", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"Snapshots.{name}: got {getattr(self, name)}; need at least {least}")
        if not 0 < self.discount <= 1:
            raise ValueError(f"Snapshots.discount: got {self.discount}; need a number above 0 and up to 1")

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> "SnapshotsState":
        """No snapshot yet."""
        del vocab_tokens, device, seed
        return SnapshotsState(self)


class SnapshotsState:
    """The snapshots that were taken."""

    ready: bool = True

    def __init__(self, settings: Snapshots) -> None:
        self.ways: list[tuple[Task, tuple[str, ...]]] = []
        """What the teacher did, task by task."""
        self._settings = settings
        self._steps = 0
        self._used = 0

    def snapshots(self) -> list[tuple[Task, float]]:
        """The tasks that begin on the teacher's way, and what they are worth to it."""
        settings = self._settings
        return [
            (task.after(way[:at]), settings.discount ** (len(way) - at))
            for task, way in self.ways
            for at in range(0, len(way), settings.every)
        ]

    async def begin(
        self, tasks: Sequence[Task], teacher: Callable[[Task], Awaitable[tuple[str, ...]]], seed: int
    ) -> list[Task]:
        """A snapshot in the place of each task, until the first steps are over.

        Raises:
            ValueError: when the teacher can solve none of the tasks.
        """
        settings = self._settings
        if self._steps >= settings.steps:
            return list(tasks)
        known = {task.id for task, _ in self.ways}
        for task in tasks:
            if len(self.ways) < settings.episodes and task.id not in known and (way := await teacher(task)):
                known.add(task.id)
                self.ways.append((task, way))
        if not self.ways:
            raise ValueError(
                f"Snapshots: got no way through any of {len(tasks)} tasks; need an environment with a method "
                "`plan(state)` that solves them"
            )
        found = self.snapshots()
        label = part(np.asarray([value for _, value in found]), settings.clusters)
        luck = np.random.default_rng(seed)
        left = list[int]()
        begun: list[Task] = []
        for _ in tasks:
            left = left or list(range(len(found)))
            cluster = luck.choice(np.unique(label[left]))
            member = int(luck.choice([at for at in left if label[at] == cluster]))
            left.remove(member)
            begun.append(found[member][0])
        self._used += len(begun)
        return begun

    def advise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch as it is."""
        del seed
        return list(rewarded)

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """The step is over."""
        del moved
        used, self._used = self._used, 0
        self._steps += 1
        return {"snapshots/used": float(used), "snapshots/kept": float(len(self.snapshots()))}

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The teacher's ways, as JSON, and how many steps are done."""
        ways = json.dumps([[task.record(), way] for task, way in self.ways])
        return {"ways": np.frombuffer(ways.encode(), dtype=np.uint8), "steps": np.asarray([self._steps])}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` gave, bit for bit."""
        self.ways = [(Task.read(row), tuple(way)) for row, way in json.loads(state["ways"].tobytes())]
        self._steps = int(state["steps"][0])


def part(value: NDArray[np.float64], clusters: int) -> NDArray[np.int64]:
    """[n] int64: the cluster of each of n values, 0 for the lowest, by exact 1-D k-means; fewer when fewer differ.

    Clusters are stretches of the sorted values: the best k of the first j end with a stretch after the best k - 1 of
    those before it.
    """
    kinds, which = np.unique(value, return_inverse=True)
    weight = np.bincount(which).astype(np.float64)
    n, k = len(kinds), min(clusters, len(kinds))
    mass, total, square = (np.concatenate([[0.0], np.cumsum(weight * kinds**power)]) for power in (0, 1, 2))

    def spread(first: int, end: int) -> float:
        """The squared distances of a stretch to its mean."""
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
