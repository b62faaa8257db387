"""Rollout without an engine: CPU time of a turn for rendering, parsing, the environment and the tree.

    python bench/turn_overhead.py [--trees 16] [--rounds 5]

Trees of 8 chains of `frozenlake`, whose prompt is the present map alone, and the same with the whole history in the
prompt. An engine returns one of the four moves at once. A line has the milliseconds of CPU time a turn, the minimum and
the median over rounds of the contexts in turn, after one that fills the caches, and a hash of the trees. To compare two
versions of Bough, run it in turn with `PYTHONPATH` set to the `src` of each.
"""

import argparse
import asyncio
import hashlib
import time
from statistics import median

from bough.context import Context, Full, Plain
from bough.engine import Completion, FinishReason, Request
from bough.engine.scripted import Scripted
from bough.env import InProcessHost
from bough.explore import Chains
from bough.policy.policy import Policy
from bough.rollout import Agent, Deadlines, RolloutRunner
from bough.tree import Tree
from bough.worlds.frozenlake.preset import frozenlake
from machine import machine

WORLD = frozenlake()
MOVES = ("left", "right", "up", "down")


class InstantEngine(Scripted):
    """Completes each request with the action that its seed draws."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(script={})
        self._actions = [policy.renderer.write(move) for move in MOVES]

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        await asyncio.sleep(0)
        tokens, given = self._actions[request.seed % len(MOVES)], request.sampling.entropies
        logprobs = (-1.0,) * len(tokens)
        return Completion(
            tokens=tokens,
            logprobs=logprobs,
            entropies=logprobs if given else None,
            finish=FinishReason.STOP,
            policy_version=0,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    env = WORLD.env
    texts = [env.instructions, *(str(env.start(task).observation) for task in env.tasks("train", 64, 0)), *MOVES]
    policy = WORLD.policy.build(texts)
    contexts: dict[str, Context] = {"the present map": WORLD.context, "the whole history": Full()}
    took: dict[str, list[float]] = {name: [] for name in contexts}
    grown: dict[str, str] = {}
    for number in range(arguments.rounds + 1):
        for name, context in contexts.items():
            begin_s = time.process_time()
            trees = grow(policy, context, arguments.trees, number)
            took[name].append(1e3 * (time.process_time() - begin_s) / sum(tree.counts.turns for tree in trees))
            grown[name] = digest(trees)
    print("| prompt | minimum, ms a turn | median | trees |\n|---|---|---|---|")
    for name, each in took.items():
        print(f"| {name} | {min(each[1:]):.3f} | {median(each[1:]):.3f} | {grown[name]} |")
    print(f"\n{machine()}")


def grow(policy: Policy, context: Context, count: int, number: int) -> list[Tree]:
    """Grow a tree for each of `count` tasks."""
    agent = Agent(
        engine=InstantEngine(policy), renderer=policy.renderer, context=context, parser=Plain(), sampling=WORLD.sampling
    )
    runner = RolloutRunner(
        agent=agent,
        host=InProcessHost(env=WORLD.env),
        instructions=WORLD.env.instructions,
        limits=WORLD.limits,
        deadlines=Deadlines(),
    )
    tasks, trees = WORLD.env.tasks("train", count, number), list[Tree]()

    async def run() -> None:
        trees.extend((await runner.run(Chains(n=8), tasks, seed=number)).trees)

    asyncio.run(run())
    return trees


def digest(trees: list[Tree]) -> str:
    """A hash of the tokens, probabilities and texts of trees."""
    found = hashlib.sha256()
    for tree in trees:
        found.update(tree.token.tobytes() + tree.logprob.tobytes() + repr(tree.info).encode())
    return found.hexdigest()[:12]


if __name__ == "__main__":
    main()
