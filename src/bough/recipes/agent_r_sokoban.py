"""Agent-R on Sokoban."""

from dataclasses import replace

from bough.methods.agent_r import agent_r
from bough.rollout import Limits
from bough.train import Run
from bough.worlds.sokoban import Sokoban
from bough.worlds.sokoban.preset import sokoban


def agent_r_sokoban() -> Run:
    """Agent-R (arXiv 2501.11425) on Sokoban: three rounds of a search of 64 rooms, and revisions of its bad paths.

    Tuned: 8 moves, because the thought is an invalid move and costs a turn; 450 demonstrations, because the policy
    reads the whole path.
    """
    world = sokoban()
    world = world.replace(
        env=Sokoban(size=6, max_steps=8, show_border=False),
        limits=Limits(turns=8),
        warmup=replace(world.warmup, demonstrations=450),
    )
    return agent_r(world).replace(name="agent_r_sokoban")
