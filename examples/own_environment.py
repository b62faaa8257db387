"""An environment and its world: `bough train grpo --on examples/own_environment.py:world`."""

from dataclasses import dataclass
from random import Random
from typing import cast

from bough.engine import Sampling
from bough.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.tree import Outcome, Task

GOODS = ("apples", "beans", "bread", "butter", "cheese", "eggs", "fish", "flour", "honey", "milk", "oil", "tea", "rice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Buy what is on the list, one thing a turn. Any other thing, or a thing twice, ends the episode."""

    wanted: int = 4
    branching = Branching.COPY
    instructions = "Buy what is on the list, each thing once. Answer with one thing."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Distinct lists. The goods on a list decide its split, so no test list is a training list."""

        def propose(random: Random) -> tuple[str, ...]:
            return tuple(sorted(random.sample(GOODS, self.wanted)))

        lists = draw_instances(
            name="Shop", split=split, count=count, seed=seed, propose=propose, content=" ".join, accept=bool
        )
        return [instance_task(name="shop", content=" ".join(goods), data={"list": list(goods)}) for goods in lists]

    def start(self, task: Task) -> State:
        """An empty basket."""
        return self._state(tuple(cast("list[str]", task.data["list"])), ())

    def step(self, state: State, action: str) -> Step:
        """Buy a good. Any other word gives `valid=False`, never an exception."""
        wanted, basket = cast("tuple[tuple[str, ...], tuple[str, ...]]", state.value)
        if action not in GOODS:
            return Step(state=state, valid=False)
        if action not in wanted or action in basket:
            return Step(state=state, outcome=Outcome.TERMINATED)
        after = self._state(wanted, (*basket, action))
        reward = 1 / len(wanted)
        if len(basket) + 1 < len(wanted):
            return Step(state=after, reward=reward)
        return Step(state=after, reward=reward, outcome=Outcome.TERMINATED, success=True)

    def plan(self, state: State) -> tuple[str, ...]:
        """The oracle, for the warm-up: the actions from here to success."""
        wanted, basket = cast("tuple[tuple[str, ...], tuple[str, ...]]", state.value)
        return tuple(good for good in wanted if good not in basket)

    def _state(self, wanted: tuple[str, ...], basket: tuple[str, ...]) -> State:
        text = f"list: {' '.join(wanted)}\nbasket: {' '.join(basket)}"
        return State(observation=text, key=text, value=(wanted, basket), admissible=GOODS)


def world() -> World:
    """Trains in a minute on two CPU cores."""
    return World(
        name="shop",
        env=Shop(),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=8),
        sampling=Sampling(max_tokens=3),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=64, epochs=15, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=40, batch_tasks=16),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=50), every=10),
    )
