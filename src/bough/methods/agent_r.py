"""Agent-R (arXiv 2501.11425)."""

from dataclasses import replace

from bough.context import Full
from bough.credit import Filtered
from bough.methods.mcts_dpo import mcts_dpo
from bough.objective import Imitation
from bough.rewrite import Revise
from bough.search import Descend, Uct
from bough.searches.mcts import mcts
from bough.train import Demonstrations, Run, World


def agent_r(
    world: World, *, thought: str = "wait", simulations: int = 64, rounds: int = 3, batch_tasks: int = 64
) -> Run:
    """Agent-R (arXiv 2501.11425): imitates the good paths of a search, and revisions of its bad ones.

    A revision is a bad path up to its first wrong step, a `thought`, and a good path from the fork. Only the thought
    and what follows are trained on.

    Assumes an environment that can step a state twice, and that answers the thought without a change of state: the
    thought costs a turn. The context is `Full`, so that the policy reads the mistake. 64 simulations and at most two
    paths a task are settings of Bough. The first wrong step is where the values of the search fall; the paper asks the
    policy, and mixes in data of other kinds.
    """
    search = replace(mcts(width=4, simulations=simulations), select=Descend(by=Uct(c=0.25), revisit=False))
    run = mcts_dpo(world, rounds=rounds, batch_tasks=batch_tasks)
    return run.replace(
        context=Full(),
        explorer=search,
        credit=Filtered(max_paths=2),
        objective=Imitation(),
        reference="start",
        demonstrations=Demonstrations(revise=Revise(thought=thought)),
    )
