"""Policy optimization with Bough's pieces alone, from rollout to optimizer step: `python examples/bare_loop.py`.

`bough train` adds evaluation, checkpoints, health checks, workers, critics, hooks and a report; the data flow is this.
"""

import argparse
import asyncio
from collections.abc import Sequence

import torch

from bough.batch import pack, pack_demonstrations
from bough.context import Plain, Window
from bough.credit import Grpo
from bough.engine import Engine, Local, Sampling
from bough.env import InProcessHost
from bough.explore import Chains, Demonstration
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext
from bough.objective import Imitation, Kl, Normalizer, Objective, PpoClip, Sum
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.reward import EnvReward, compute_rewards
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner
from bough.tree import Task, Ternary, Tree, counted, groups
from bough.worlds.frozenlake import FrozenLake

ENV = FrozenLake(size=4, max_steps=10)
SEED = 0


def texts(tasks: Sequence[Task]) -> list[str]:
    """Observations and actions of the oracle, from which `Tiny` builds its tokenizer."""
    found = [ENV.instructions]
    for task in tasks:
        state = ENV.start(task)
        for action in ENV.plan(state):
            found += [state.observation, action]
            state = ENV.step(state, action).state
    return found


def make_runner(policy: Policy, engine: Engine) -> RolloutRunner:
    """The agent, the environment and the budgets that all rollouts share."""
    agent = Agent(
        engine=engine,
        renderer=policy.renderer,
        context=Window(turns=1),
        parser=Plain(),
        sampling=Sampling(max_tokens=4),
    )
    return RolloutRunner(
        agent=agent,
        host=InProcessHost(env=ENV),
        instructions=ENV.instructions,
        limits=Limits(turns=10),
        deadlines=Deadlines(),
    )


def roll_out(runner: RolloutRunner, explorer: Explorer, tasks: Sequence[Task], seed: int) -> tuple[Tree, ...]:
    """One tree for each task: the paths of a task share its prompt, and every token is stored once."""
    return asyncio.run(runner.run(explorer, tasks, seed=seed)).trees


def success_rate(trees: Sequence[Tree]) -> float:
    """Fraction of paths that end in success."""
    ends = [bool(tree.success[leaf] == Ternary.YES) for tree in trees for leaf in counted(tree).tolist()]
    return sum(ends) / len(ends)


def warm_up(policy: Policy, demonstrations: Sequence[Tree], epochs: int) -> None:
    """Behaviour cloning on the oracle's paths."""
    learner = Learner(policy, Optimizer(learning_rate=2e-3, minibatches=8), total_updates=8 * epochs, temperature=1.0)
    batch = pack_demonstrations(demonstrations)
    for epoch in range(epochs):
        learner.learn(batch, Imitation(), Normalizer(), seed=epoch)


def train(steps: int, batch_tasks: int, demonstrations: int) -> list[float]:
    """GRPO on FrozenLake; returns the success rate of each step's paths."""
    torch.set_num_threads(1)
    tasks = ENV.tasks("train", max(demonstrations, steps * batch_tasks), SEED)
    policy = Tiny(layers=2, width=64, heads=4).build(texts(tasks[:demonstrations]))
    engine = Local(slots=128).build(policy)
    runner = make_runner(policy, engine)

    warm_up(policy, roll_out(runner, Demonstration(), tasks[:demonstrations], SEED), epochs=12)
    reference = policy.replica()

    objective: Objective = Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.04)))
    learner = Learner(policy, Optimizer(learning_rate=5e-4, minibatches=2), total_updates=2 * steps, temperature=1.0)
    rates: list[float] = []
    for step in range(steps):
        # The engine samples from the newest weights; what it computed with older ones is invalid.
        engine.load_weights(policy.weights(), learner.updates)
        engine.reset_cache()
        now = tasks[step * batch_tasks : (step + 1) * batch_tasks]
        trees = roll_out(runner, Chains(n=8), now, seed=step + 1)

        rewarded = [each for group in groups(trees) for each in compute_rewards(group, (EnvReward(),))]
        credited = Grpo()(rewarded)
        batch = pack(credited)
        metrics = learner.learn(
            batch, objective, Normalizer(), seed=step, context=ObjectiveContext(reference=reference)
        )

        rates.append(success_rate(trees))
        print(f"step {step + 1:3}  success {rates[-1]:.3f}  loss {metrics['loss/total']:+.4f}")
    asyncio.run(engine.close())
    return rates


def main() -> None:
    """Read the numbers of steps, tasks and demonstrations from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-tasks", type=int, default=16)
    parser.add_argument("--demonstrations", type=int, default=64)
    given = parser.parse_args()
    for name, number in vars(given).items():
        if number < 1:
            parser.error(f"--{name.replace('_', '-')}: got {number}; need at least 1")
    train(given.steps, given.batch_tasks, given.demonstrations)


if __name__ == "__main__":
    main()
