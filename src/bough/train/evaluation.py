"""Evaluates the policy on held-out tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bough.explore import Chains
from bough.rollout import Agent, Evaluates, Explorer, RolloutRunner, TreeStore
from bough.train.summary import cut_by_context
from bough.tree import ActionCounts, Task, Ternary, Tree, count_actions, counted, turns

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
    """

    successes: dict[str, bool]
    failures: Mapping[str, str]
    turns: float
    actions: ActionCounts
    trees: tuple[Tree, ...] = field(repr=False)

    @property
    def truncated_context(self) -> int:
        """The number of paths truncated by the model's context."""
        return len(cut_by_context(self.trees))

    @property
    def rate(self) -> float:
        """Fraction of successes, in [0, 1]; nan without a finished task."""
        return sum(self.successes.values()) / len(self.successes) if self.successes else float("nan")


async def measure(
    runner: RolloutRunner,
    explorer: Explorer,
    tasks: Sequence[Task],
    *,
    temperature: float,
    seed: int,
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
        seat: The seat whose success is measured; "" for that of the environment.
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
    return HeldoutResult(
        successes=successes,
        failures=grown.failures,
        turns=sum(lengths) / len(lengths) if lengths else float("nan"),
        actions=count_actions(grown.trees),
        trees=grown.trees,
    )


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
