"""Evaluates the policy on held-out tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bough.explore import Chains
from bough.rollout import Evaluates, Explorer, RolloutRunner, TreeStore
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
    shelf: TreeStore | None = None,
) -> HeldoutResult:
    """Play one episode of every task at a temperature: a chain, or the explorer's own kind of episode."""
    single = explorer.single() if isinstance(explorer, Evaluates) else Chains(n=1)
    agent = replace(runner.agent, sampling=replace(runner.agent.sampling, temperature=temperature, entropies=False))
    grown = await replace(runner, agent=agent, max_concurrent=AT_ONCE).run(single, tasks, seed=seed, shelf=shelf)
    successes: dict[str, bool] = {}
    lengths: list[int] = []
    for tree in grown.trees:
        for leaf in counted(tree):
            successes[tree.task.id] = bool(tree.success[leaf] == Ternary.YES)
            lengths.append(int(turns(tree)[leaf]))
    return HeldoutResult(
        successes=successes,
        failures=grown.failures,
        turns=sum(lengths) / len(lengths) if lengths else float("nan"),
        actions=count_actions(grown.trees),
        trees=grown.trees,
    )
