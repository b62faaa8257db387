"""Partial histories as tasks: what was halfway, and could still go either way, is begun again from there."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree import Kind, Rewarded, Task, Tree, counted, groups, is_replayed, path


@dataclass(frozen=True, slots=True, kw_only=True)
class ExIt:
    """Experimental: ExIt (arXiv 2509.04575): partial histories are tasks too, drawn by their group's variance.

    When the paths of a group earn differently, a random one of them is cut off after a random turn before its last, and
    what was done up to there is kept as a task of its own (`Task.start`), with a priority:

        priority = variance of the returns of the group (ddof 0)

        returns 0 0 1 1  ->  a history with priority 0.25       returns 0 0 0 0  ->  none

    Each task that is drawn is, with a chance of `chance`, replaced by a history, drawn in proportion to the
    priorities and at most once in a batch. A history that was played has the variance of its own group for a priority
    from then on; one of which all paths earned the same is dropped. It can itself be cut further on. When there are
    more than `keep`, those of the lowest priority go, the oldest first.

    Written from the abstract and summaries. The paper's turns are whole answers, each of which improves on the one
    before or is asked to be different from it ("self-divergence"); here what follows a history is the rest of an
    episode. A bonus for being unlike the rest of the group is left out.

    Metrics: `exit/kept`, histories; `exit/used`, of this step's tasks; `exit/turns`, how long the kept ones are.

    Attributes:
        keep: Most histories, >= 1.
        chance: Of a task to be replaced, in [0, 1].
    """

    keep: int = 256
    chance: float = 0.5

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"ExIt.keep: got {self.keep}; need at least 1")
        if not 0 <= self.chance <= 1:
            raise ValueError(f"ExIt.chance: got {self.chance}; need a number from 0 to 1")

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> "ExItState":
        """No history yet."""
        del vocab_tokens, device, seed
        return ExItState(self)


class ExItState:
    """The histories that are kept."""

    ready: bool = True

    def __init__(self, settings: ExIt) -> None:
        self.kept: dict[str, tuple[Task, float]] = {}
        """By id, oldest first: the task and its priority, > 0."""
        self._settings = settings
        self._used = 0

    async def begin(
        self, tasks: Sequence[Task], teacher: Callable[[Task], Awaitable[tuple[str, ...]]], seed: int
    ) -> list[Task]:
        """The tasks, some of them replaced."""
        del teacher
        luck = np.random.default_rng(seed)
        replaced = [place for place in range(len(tasks)) if luck.random() < self._settings.chance]
        known = list(self.kept.values())
        replaced = replaced[: len(known)]
        begun = list(tasks)
        if replaced:
            weight = np.asarray([priority for _, priority in known])
            drawn = luck.choice(len(known), len(replaced), replace=False, p=weight / weight.sum())
            for place, at in zip(replaced, drawn.tolist(), strict=True):
                begun[place] = known[at][0]
        self._used += len(replaced)
        return begun

    def advise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch as it is; its histories are kept."""
        luck = np.random.default_rng(seed)
        for group in groups([each for each in rewarded if not is_replayed(each.tree)]):
            returns = np.concatenate([each.returns() for each in group])
            if len(returns):
                self._keep(group, float(returns.var()) if returns.max() > returns.min() else 0.0, luck)
        lowest = sorted(self.kept, key=lambda name: self.kept[name][1])
        for name in lowest[: max(0, len(self.kept) - self._settings.keep)]:
            del self.kept[name]
        return list(rewarded)

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """The step is over."""
        del moved
        used, self._used = self._used, 0
        turns = [len(task.start) for task, _ in self.kept.values()]
        return {
            "exit/used": float(used),
            "exit/kept": float(len(turns)),
            "exit/turns": float(np.mean(turns)) if turns else 0.0,
        }

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The histories, as JSON, and their priorities."""
        tasks = json.dumps([task.record() for task, _ in self.kept.values()])
        return {
            "tasks": np.frombuffer(tasks.encode(), dtype=np.uint8),
            "priority": np.asarray([priority for _, priority in self.kept.values()], dtype=np.float64),
        }

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` gave, bit for bit."""
        tasks = [Task.read(row) for row in json.loads(state["tasks"].tobytes())]
        self.kept = {task.id: (task, at) for task, at in zip(tasks, state["priority"].tolist(), strict=True)}

    def _keep(self, group: Sequence[Rewarded], priority: float, luck: np.random.Generator) -> None:
        """Take note of what a group earned."""
        task = group[0].tree.task
        self.kept.pop(task.id, None)
        if not priority:
            return
        if task.start:
            self.kept[task.id] = (task, priority)
        ends = [(each.tree, int(leaf)) for each in group for leaf in counted(each.tree)]
        tree, leaf = ends[int(luck.integers(len(ends)))]
        begun, done = len(task.start), _actions(tree, leaf)
        if len(done) - begun > 1:
            history = task.after(done[begun : begun + int(luck.integers(1, len(done) - begun))])
            self.kept[history.id] = (history, priority)


def _actions(tree: Tree, leaf: int) -> list[str]:
    """What was done on a path; of an action in pieces, the last piece has its text."""
    acts = [int(node) for node in path(tree, leaf) if tree.kind[node] == Kind.ACTION]
    return [str(tree.info[node]["text"]) for node in acts if "text" in tree.info[node]]
