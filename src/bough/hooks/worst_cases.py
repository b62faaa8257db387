"""Training on a growing set of the task variants on which the policy is worst."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, TaskSampler, Teacher
from bough.needs import ON_POLICY, Need
from bough.piece import piece
from bough.tree import Floats, Rewarded, Task

CHOSEN, IN_SET, OTHER = 1.0, 1e-4, 1e-8
"""Sampling weights of a task: of the variant whose turn it is, of another variant of the set, of any other."""


@piece
class WorstCases:
    """IWOCS' set of worst cases (arXiv 2410.06212): find the variant that the policy is worst on, train on it, repeat.

    A variant is a value of `key` in the data of a task, such as the chance to slip: each task can be played with each
    of the `values`. Without `key` the tasks themselves are the variants. The hook repeats a cycle:

        probe     `probe_steps` steps play all variants in turn; the mean return of each is measured. Where their tasks
                  are fewer than the variants, the next probe goes on with the turns
        add       the variant of the lowest mean joins the set, if it is lower than that of all members in the probe, or
                  the set is empty
        train     `train_steps` steps play one variant each, the members of the set in turn, the newest first

    Means .9, .4, .6 of three variants add the second. If training brings its mean to .7, and the third now has .5, the
    third joins; if the worst one is a member, none does, and the turns go on. So most steps train few variants, and
    the lowest mean rises. Every tree of a step counts, and the policy is updated in all steps.

    The paper solves a sequence of ordinary problems on single dynamics, each with a policy of its own, and acts by the
    best action under the least of their Q-functions; here one policy learns all members. It finds the worst dynamics by
    optimization; here they are measured. Where tasks are the variants, a batch is the task whose turn it is, the other
    members, and tasks drawn uniformly. A task that is played with another value has an id of its own.

    A probe judges the variants of its own step, so it needs rollouts of the current weights.

    Metrics: `worst/set`, the number of members; `worst/return`, the lowest mean of the last probe; `worst/mean`, the
    mean over its variants.

    Attributes:
        key: A name in `Task.data` that the environment reads; "" for the task itself.
        values: The values of the key, numbers or texts; () for the task itself.
        probe_steps: Steps of a probe.
        train_steps: Steps of training between probes.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ON_POLICY})

    key: str = ""
    values: Sequence[float | str] = ()
    probe_steps: int = 1
    train_steps: int = 4

    def __post_init__(self) -> None:
        if bool(self.key) != bool(self.values) or len({*self.values}) < len(self.values):
            raise ValueError(
                f"WorstCases: got key={self.key!r}, values={self.values}; need a key with different values, or neither"
            )
        if self.probe_steps < 1 or self.train_steps < 1:
            raise ValueError(
                f"WorstCases: got probe_steps={self.probe_steps}, train_steps={self.train_steps}; need at least 1"
            )

    def build(self, setup: HookSetup) -> "WorstCasesState":
        """Return a state with an empty set."""
        return WorstCasesState(self, setup)


@dataclass(slots=True, kw_only=True)
class WorstCasesData:
    """The state of the hook.

    Attributes:
        members: The variants of the set, oldest first, as JSON.
        returns: By variant, the returns of the present probe.
        steps: The number of finished steps.
        lowest: The lowest mean of the last probe.
        mean: The mean over its variants.
    """

    members: list[str] = field(default_factory=list[str])
    returns: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    steps: int = 0
    lowest: float = 0.0
    mean: float = 0.0


class WorstCasesState(BatchHook[WorstCases], TaskRewriter, TaskSampler):
    """The set, and the returns of the present probe."""

    def __init__(self, settings: WorstCases, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: WorstCasesData = WorstCasesData()

    @property
    def probing(self) -> bool:
        """Whether the present step is of a probe."""
        cycle = self.settings.probe_steps + self.settings.train_steps
        return not self.data.members or self.data.steps % cycle < self.settings.probe_steps

    @property
    def chosen(self) -> str:
        """The member whose turn it is."""
        cycle = self.settings.probe_steps + self.settings.train_steps
        turn = self.data.steps % cycle - self.settings.probe_steps
        return self.data.members[-1 - turn % len(self.data.members)]

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n]: nearly all weight on the task whose turn it is; None in a probe, and where tasks are no variants."""
        if self.probing or self.settings.key:
            return None
        weight = dict.fromkeys(self.data.members, IN_SET) | {self.chosen: CHOSEN}
        return np.asarray([weight.get(json.dumps(task), OTHER) for task in tasks])

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, _seed: int) -> list[Task]:
        """Set the variant of the tasks: all in turn in a probe, else the one whose turn it is."""
        key, values, length = self.settings.key, self.settings.values, self.settings.probe_steps
        if not key:
            return list(tasks)
        cycle, place = divmod(self.data.steps, length + self.settings.train_steps)
        # The turns go on in the next step of probes, so that small batches play all variants too.
        start = (cycle * length + place) * len(tasks)
        given = [
            values[(start + place) % len(values)] if self.probing else json.loads(self.chosen)
            for place in range(len(tasks))
        ]
        return [
            replace(task, id=f"{task.id}~{key}={value}", data={**task.data, key: value})
            for task, value in zip(tasks, given, strict=True)
        ]

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Note the returns in a probe, and return the batch unchanged."""
        for each in rewarded:
            returns = each.returns()
            if self.probing and len(returns) and not each.tree.replayed:
                self.data.returns.setdefault(self._of(each.tree.task), []).append(float(returns.mean()))
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        """End the step, and a probe after its last one; return the metrics."""
        settings = self.settings
        place = self.data.steps % (settings.probe_steps + settings.train_steps)
        # A first probe without returns is prolonged.
        last = place == settings.probe_steps - 1 or (place >= settings.probe_steps and not self.data.members)
        if last and self.data.returns:
            self._add()
        self.data.steps += 1
        return {
            "worst/set": float(len(self.data.members)),
            "worst/return": self.data.lowest,
            "worst/mean": self.data.mean,
        }

    def _add(self) -> None:
        """Add the worst variant of the probe to the set, unless a member is as bad."""
        mean = {variant: float(np.mean(paid)) for variant, paid in self.data.returns.items()}
        worst = min(mean, key=lambda variant: mean[variant])
        self.data.lowest, self.data.mean = mean[worst], float(np.mean(list(mean.values())))
        if all(mean[worst] < mean.get(member, np.inf) for member in self.data.members):
            self.data.members.append(worst)
        self.data.returns = {}

    def _of(self, task: Task) -> str:
        """The variant of a task, as JSON."""
        return json.dumps(task.data[self.settings.key] if self.settings.key else task.id)
