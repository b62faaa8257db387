"""An environment of one action with a graded reward, and a small run on it without a warm-up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.small import run as small
from tests.small import world

from bough.engine import Sampling
from bough.env import Branching, Split, State, Step
from bough.reward import EnvReward, InvalidAction
from bough.train import Run, Warmup
from bough.tree import Outcome, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Pays a tenth for each character of the only action; no path succeeds.

    Attributes:
        splits: The splits with tasks.
        tied: Every so many tasks one pays nothing; 0 for none.
    """

    splits: tuple[str, ...] = ("train", "test")
    tied: int = 0
    branching: Branching = Branching.COPY
    instructions: str = "Write."

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:  # noqa: ARG002
        if split not in self.splits:
            raise ValueError(f"got {split}")
        return [Task(id=f"{split}-{i}", seed=i + 1000 * (split == "test")) for i in range(count)]

    def start(self, task: Task) -> State:
        return State(observation=f"Say {task.seed}.", key="", value=task.seed)

    def step(self, state: State, action: str) -> Step:
        pays = not (self.tied and int(str(state.value)) % self.tied == 0)
        return Step(state=replace(state, observation=""), reward=pays * len(action) / 10, outcome=Outcome.TERMINATED)


def run(env: Lengths = Lengths()) -> Run:
    """One step."""
    there = world().replace(
        env=env, steps=1, warmup=Warmup(), rewards=(EnvReward(), InvalidAction()), sampling=Sampling(max_tokens=4)
    )
    return there.run(name="lengths", explorer=small().method.explorer)
