"""ExIt: uses partial histories as tasks, sampled by the variance of their group's returns."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, Teacher
from bough.hooks.tie_tolerance import tie_tolerance
from bough.needs import SEATS, SELF_ITERATION, Need
from bough.tree import (
    Kind,
    Rewarded,
    Task,
    TaskMark,
    Tree,
    TruncatedBy,
    counted,
    groups,
    path,
    text_in,
)

ITERATION = TaskMark("iteration")
"""The step after a history, which `SelfIteration` shows: "improve" or "diverge"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExIt:
    """Experimental: ExIt (arXiv 2509.04575): partial histories are tasks too, drawn by their group's variance.

    When the returns of a group differ, a random path is cut after a random turn before its last. The turns up to
    there are stored as a task of its own (`Task.start`), with a priority:

        priority = variance of the returns of the group (ddof 0)

        returns 0 0 1 1  ->  a history with priority 0.25       returns 0 0 0 0  ->  none

    Each drawn task is replaced with probability `chance` by a history. Histories are drawn in proportion to the
    priorities and at most once in a batch. After a rollout, the priority of a history is the variance of its own
    group; a history whose paths all have the same return is dropped. Histories can be extended further. When there are
    more than `keep`, the ones with the lowest priority are dropped, the oldest first.

    A path that `limits.turns` ended can also be stored whole. With `diverge` p a drawn history is followed by an
    instruction of `SelfIteration`: with probability p to give a different answer, else to improve on the last. With
    `limits.turns=1` an episode is one such step, as in the paper. Without `diverge` a history is followed by the rest
    of an episode. The priority of a history is that of its newest group, whatever its instruction.

    Written from the abstract and summaries; `Diversity` is the paper's bonus for differing from the rest of the group.

    Metrics: `exit/kept`, histories; `exit/used`, of this step's tasks; `exit/turns`, mean length of the stored ones.

    Attributes:
        keep: Maximum number of histories, >= 1.
        chance: Probability that a task is replaced, in [0, 1].
        diverge: Probability that a history is followed by the instruction to give a different answer, in [0, 1]; None
            for no instructions.
    """

    conflicts: ClassVar[frozenset[Need]] = frozenset({SEATS})

    keep: int = 256
    chance: float = 0.5
    diverge: float | None = None

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"ExIt.keep: got {self.keep}; need at least 1")
        if not 0 <= self.chance <= 1:
            raise ValueError(f"ExIt.chance: got {self.chance}; need a number from 0 to 1")
        if self.diverge is not None and not 0 <= self.diverge <= 1:
            raise ValueError(f"ExIt.diverge: got {self.diverge}; need a number from 0 to 1, or None")

    @property
    def needs(self) -> frozenset[Need]:
        """An environment with the instructions, where there are any."""
        return frozenset() if self.diverge is None else frozenset({SELF_ITERATION})

    def build(self, setup: HookSetup) -> "ExItState":
        """Return a state without histories."""
        return ExItState(self, setup)


@dataclass(slots=True, kw_only=True)
class ExItData:
    """The state of the hook.

    Attributes:
        kept: The histories by id, oldest first: the task and its priority, > 0.
        drawn: Histories in each batch that was drawn but has not arrived: with staleness a step draws the next one.
    """

    kept: dict[str, tuple[Task, float]] = field(default_factory=dict[str, tuple[Task, float]])
    drawn: deque[int] = field(default_factory=deque[int])


class ExItState(BatchHook[ExIt], TaskRewriter):
    """The stored histories."""

    def __init__(self, settings: ExIt, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: ExItData = ExItData()
        self._used = 0

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, seed: int) -> list[Task]:
        """The tasks, some of them replaced by histories."""
        rng = np.random.default_rng(seed)
        replaced = [place for place in range(len(tasks)) if rng.random() < self.settings.chance]
        known = list(self.data.kept.values())
        replaced = replaced[: len(known)]
        begun = list(tasks)
        if replaced:
            weight = np.asarray([priority for _, priority in known])
            drawn = rng.choice(len(known), len(replaced), replace=False, p=weight / weight.sum())
            for place, at in zip(replaced, map(int, drawn), strict=True):
                begun[place] = self._iterate(known[at][0], rng)
        self.data.drawn.append(len(replaced))
        return begun

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Store the histories of the batch, and return the batch unchanged."""
        self._used += self.data.drawn.popleft() if self.data.drawn else 0
        rng = np.random.default_rng(seed)
        for group in groups([each for each in rewarded if not each.tree.replayed]):
            returns = np.concatenate([each.returns() for each in group])
            if len(returns):
                differ = np.ptp(returns) > tie_tolerance(returns)
                self._keep(group, float(returns.var()) if differ else 0.0, rng)
        lowest = sorted(self.data.kept, key=lambda name: self.data.kept[name][1])
        for name in lowest[: max(0, len(self.data.kept) - self.settings.keep)]:
            del self.data.kept[name]
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        used, self._used = self._used, 0
        turns = [len(task.start) for task, _ in self.data.kept.values()]
        return {
            "exit/used": float(used),
            "exit/kept": float(len(turns)),
            "exit/turns": float(np.mean(turns)) if turns else 0.0,
        }

    def _iterate(self, history: Task, rng: np.random.Generator) -> Task:
        """A history, with an instruction where there are any."""
        diverge = self.settings.diverge
        if diverge is None:
            return history
        return ITERATION.add(history, "diverge" if rng.random() < diverge else "improve")

    def _keep(self, group: Sequence[Rewarded], priority: float, rng: np.random.Generator) -> None:
        """Store or update the history of a group."""
        task = ITERATION.remove(group[0].tree.task)
        self.data.kept.pop(task.id, None)
        if not priority:
            return
        if task.start:
            self.data.kept[task.id] = (task, priority)
        ends = [(each.tree, int(leaf)) for each in group for leaf in counted(each.tree)]
        tree, leaf = ends[int(rng.integers(len(ends)))]
        begun, done = len(task.start), _actions(tree, leaf)
        cuts = len(done) - begun - int(tree.truncated_by[leaf] != TruncatedBy.TURNS)
        if cuts > 0:
            history = task.after(done[begun : begun + int(rng.integers(1, cuts + 1))])
            self.data.kept[history.id] = (history, priority)


def _actions(tree: Tree, leaf: int) -> list[str]:
    """The actions of a path; the last piece of a split action has its text."""
    acts = [int(node) for node in path(tree, leaf) if tree.kind[node] == Kind.ACTION]
    texts = [text_in(tree.info[node]) for node in acts]
    return [text for text in texts if text is not None]
