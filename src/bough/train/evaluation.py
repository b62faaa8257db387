"""Evaluates the policy on held-out tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bough.explore import Chains
from bough.needs import Appraised, names_of, needs_of
from bough.reward import Reward, reward_trees
from bough.rollout import Agent, Evaluates, Explorer, RolloutRunner, TreeStore
from bough.train.summary import cut_by_context
from bough.tree import (
    ActionCounts,
    Task,
    Ternary,
    Tree,
    count_actions,
    counted,
    seat_view,
    sum_to_root,
    turns,
)
from bough.view import TASK_CHANNELS

AT_ONCE = 128
"""Maximum number of concurrent tasks: it fills a batch, and the engine's cache holds every prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldoutResult:
    """The result on a list of tasks, one path each.

    Attributes:
        successes: Task id to whether its path succeeded; tasks that failed in all retries are missing.
        failures: By id of each failed task, the cause.
        turns: Mean number of actions on a path; nan without a path.
        actions: Counts of the policy's actions.
        trees: The rollouts.
        rewards: Task id to the reward of its path, the sum of its channels; without channels that read the answers of
            appraisers, which held-out paths do not have.
        channels: By reward channel, its mean over the paths.
        checks: By check, task id to its sum over the path (`evaluation.checks`); without checks that read the answers
            of appraisers.
        graded: Whether the reward is more than success: successes, or failures, have several values, by the channels
            "env" and "success", or by all channels where a run has neither.
    """

    successes: dict[str, bool]
    failures: Mapping[str, str]
    turns: float
    actions: ActionCounts
    trees: tuple[Tree, ...] = field(repr=False)
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    channels: Mapping[str, float] = field(default_factory=dict[str, float])
    checks: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    graded: bool = False

    @property
    def truncated_context(self) -> int:
        """The number of paths truncated by the model's context."""
        return len(cut_by_context(self.trees))

    @property
    def rate(self) -> float:
        """Fraction of successes, in [0, 1]; nan without a finished task."""
        return sum(self.successes.values()) / len(self.successes) if self.successes else float("nan")

    @property
    def reward(self) -> float:
        """Mean reward of a path; nan without rewards."""
        return mean_of(self.rewards)


def mean_of(values: Mapping[str, float]) -> float:
    """The mean of the values of tasks; nan without any."""
    return math.fsum(values.values()) / len(values) if values else math.nan


async def measure(
    runner: RolloutRunner,
    explorer: Explorer,
    tasks: Sequence[Task],
    *,
    temperature: float,
    seed: int,
    rewards: Sequence[Reward] = (),
    checks: Sequence[Reward] = (),
    seat: str = "",
    store: TreeStore | None = None,
) -> HeldoutResult:
    """Play one episode of every task at a temperature: a chain, or the explorer's own kind of episode.

    Args:
        runner: Grows the trees.
        explorer: The run's explorer.
        tasks: The tasks.
        temperature: Of the policies in training; models of automatic seats keep their own.
        seed: Seed of the episodes.
        rewards: The run's rewards.
        checks: The run's checks (`evaluation.checks`).
        seat: The seat whose success and rewards are measured; "" for those of the environment.
        store: Receives the finished trees.
    """
    single = explorer.single() if isinstance(explorer, Evaluates) else Chains(n=1)
    changed = replace(at_temperature(runner, temperature), max_concurrent=AT_ONCE)
    grown = await changed.run(single, tasks, seed=seed, store=store)
    successes: dict[str, bool] = {}
    lengths: list[int] = []
    for tree in grown.trees:
        success = tree.success_of(seat)
        for leaf in counted(tree):
            successes[tree.task.id] = bool(success[leaf] == Ternary.YES)
            lengths.append(int(turns(tree)[leaf]))
    paid = _channels(grown.trees, rewards, seat)
    checked = _channels(grown.trees, checks, seat, "evaluation.checks")
    totals = {task: math.fsum(channels.values()) for task, channels in paid.items()}
    names = dict.fromkeys(name for channels in paid.values() for name in channels)
    return HeldoutResult(
        rewards=totals,
        channels={name: math.fsum(each.get(name, 0.0) for each in paid.values()) / len(paid) for name in names},
        checks={
            name: {task: each[name] for task, each in checked.items() if name in each}
            for name in dict.fromkeys(name for each in checked.values() for name in each)
        },
        graded=is_graded(paid, successes),
        successes=successes,
        failures=grown.failures,
        turns=sum(lengths) / len(lengths) if lengths else float("nan"),
        actions=count_actions(grown.trees),
        trees=grown.trees,
    )


def _channels(
    trees: Sequence[Tree], rewards: Sequence[Reward], seat: str, field: str = "rewards"
) -> dict[str, dict[str, float]]:
    """By task, the sum of each reward channel over its path; without channels that need the answers of appraisers."""
    known = [each for each in rewards if not names_of(needs_of(each), Appraised)]
    views = [view for tree in trees if (view := seat_view(tree, seat) if seat else tree) is not None]
    return {
        each.tree.task.id: {name: float(sum_to_root(each.tree, pay)[leaf]) for name, pay in each.channels.items()}
        for each in (reward_trees(views, known, field) if known else ())
        for leaf in counted(each.tree)
    }


def is_graded(paid: Mapping[str, Mapping[str, float]], successes: Mapping[str, bool]) -> bool:
    """Whether the channels that define the task pay several values for success, or several for failure."""
    values: dict[bool, set[float]] = {True: set(), False: set()}
    for task, channels in paid.items():
        own = [value for name, value in channels.items() if name in TASK_CHANNELS] or [*channels.values()]
        values[successes[task]].add(round(math.fsum(own), 9))
    return any(len(each) > 1 for each in values.values())


def at_temperature(runner: RolloutRunner, temperature: float) -> RolloutRunner:
    """A runner whose policies in training sample at a temperature; models of automatic seats keep their own."""
    seats = {
        name: replace(each, agent=_at(each.agent, temperature)) if isinstance(each.agent, Agent) else each
        for name, each in runner.seats.items()
        if not each.automatic
    }
    return replace(runner, agent=_at(runner.agent, temperature), seats={**runner.seats, **seats})


def _at(agent: Agent, temperature: float) -> Agent:
    """The agent at another temperature."""
    return replace(agent, sampling=replace(agent.sampling, temperature=temperature, entropies=False))
