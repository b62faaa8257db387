"""Agent-R on Sokoban in text: a search shows where paths go wrong, and the policy learns to say so and go on better.

Paper: Agent-R (arXiv 2501.11425). A round is a search of 64 rooms by 64 simulations; the policy then imitates good
paths, at most two a room, and revisions: a bad path up to its first wrong step (without loss), a thought, and a good
path from the fork. Assumes an environment that can be stepped from the same state twice.
The first wrong step is where the values of the search fall; the paper asks the policy, and mixes in data of other
kinds. The thought is an invalid move, which costs a turn and changes nothing; so the turn limit exceeds what the rooms
need, and the context is `Full`.
"""

from dataclasses import replace

from bough.context import Full
from bough.credit import Filtered
from bough.env import Sokoban
from bough.explore import Limits
from bough.explore.search import Descend, Uct, mcts
from bough.objective import Imitation
from bough.recipes import mcts_dpo_sokoban
from bough.train import Experts, Revise, Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = mcts_dpo_sokoban.run()
    return replace(
        base,
        name="agent_r_sokoban",
        env=Sokoban(size=6, max_steps=8, show_border=False),
        context=Full(),
        explorer=replace(mcts(width=4, simulations=64), select=Descend(by=Uct(c=0.25), revisit=False)),
        limits=Limits(turns=8),
        credit=Filtered(most=2),
        objective=Imitation(),
        reference="start",
        # Who reads all of what happened has more to learn before the first success.
        warmup=replace(base.warmup, demonstrations=450),
        experts=Experts(revise=Revise(thought="wait")),
    )
