"""How evenly ranks divide real batches: tokens of the rank with the fewest, over the mean.

    python bench/division.py [--worlds frozenlake sokoban] [--write]

For each world and shape of trees, batches of four tasks a rank, for 2, 3 and 4 ranks. An engine returns at once an
action of the world's own plans or of its first states, drawn by the request's seed; nothing is trained. Every path of a
tree has a loss, as in a batch in which no advantage is zero. The counts do not depend on the machine.
"""

import argparse
import asyncio
from collections.abc import Sequence

import numpy as np

from bough.batch import pack, shares
from bough.cli.find import find_world
from bough.engine import Completion, FinishReason, Request
from bough.engine.scripted import Scripted
from bough.env import InProcessHost
from bough.explore import Chains, Forks
from bough.policy.policy import Policy
from bough.reward import EnvReward, reward_trees
from bough.rollout import Agent, Deadlines, Explorer, RolloutRunner
from bough.searches.mcts import mcts
from bough.train import World
from bough.tree import AgentAction, Tree, action_text, counted, plain_text, spread_paths
from page import write

WORLDS = (
    "frozenlake",
    "sokoban",
    "shop",
    "ledger",
    "function_calls",
    "search",
    "textworld",
    "pantry",
    "sql",
    "screens",
)
SHAPES: dict[str, Explorer] = {
    "chains": Chains(n=8),
    "trees": Forks(),
    "pairs": Chains(n=2),
    "searches": mcts(width=2, simulations=8),
}
RANKS = (2, 3, 4)
TASKS_A_RANK = 4


class InstantEngine(Scripted):
    """Completes each request with the action that its seed draws."""

    def __init__(self, policy: Policy, actions: Sequence[AgentAction]) -> None:
        super().__init__(script={}, context_tokens=2**20)
        self._actions = [policy.renderer.write(action) for action in actions]

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        await asyncio.sleep(0)
        tokens = self._actions[request.seed % len(self._actions)]
        logprobs = (-1.0,) * len(tokens)
        return Completion(
            tokens=tokens, logprobs=logprobs, entropies=logprobs, finish=FinishReason.STOP, policy_version=0
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=WORLDS)
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    arguments = parser.parse_args()
    lines = [f"| world | {' | '.join(SHAPES)} |", "|---" * (1 + len(SHAPES)) + "|"]
    print("\n".join(lines))
    for name in arguments.worlds:
        cells = [", ".join(f"{share:.2f}" for share in found) for found in measure(find_world(name)).values()]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if arguments.write:
        write("scale.md", "division", "\n".join(lines))


def measure(world: World) -> dict[str, list[float]]:
    """By shape, the smallest share over the mean, for each number of `RANKS`."""
    tasks = world.env.tasks("train", TASKS_A_RANK * max(RANKS), 0)
    host = InProcessHost(env=world.env)
    states = [asyncio.run(host.start(task)) for task in tasks]
    plans = [asyncio.run(host.plan(state)) or state.admissible or ("go",) for state in states]
    actions = [action for plan in plans for action in plan]
    texts = [world.env.instructions, *(plain_text(state.observation) for state in states), *map(action_text, actions)]
    policy = world.policy.build(texts)
    agent = Agent(
        engine=InstantEngine(policy, actions),
        renderer=policy.renderer,
        context=world.context,
        parser=world.parser,
        sampling=world.sampling,
    )
    runner = RolloutRunner(
        agent=agent,
        host=host,
        instructions=world.env.instructions,
        limits=world.limits,
        deadlines=Deadlines(),
    )
    found: dict[str, list[float]] = {}
    for name, explorer in SHAPES.items():
        trees = asyncio.run(runner.run(explorer, tasks, seed=0)).trees
        found[name] = [evenness(trees[: TASKS_A_RANK * ranks], policy, ranks) for ranks in RANKS]
    asyncio.run(host.close())
    return found


def evenness(trees: Sequence[Tree], policy: Policy, ranks: int) -> float:
    """Tokens of the rank with the fewest, over the mean."""
    rewarded = [each for tree in trees for each in reward_trees([tree], (EnvReward(),))]
    batch = pack([spread_paths(each, np.ones(len(counted(each.tree)))) for each in rewarded])
    tokens = [len(each) for each in shares(batch.prefix_tree(), ranks, policy.arithmetic().operations)]
    return min(tokens) * ranks / sum(tokens)


if __name__ == "__main__":
    main()
