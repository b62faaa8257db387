"""Agent Q on Sokoban."""

from bough.methods.agent_q import agent_q
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def agent_q_sokoban() -> Run:
    """Agent Q (arXiv 2408.07199) on Sokoban: three rounds of a search of 64 rooms."""
    return agent_q(sokoban()).replace(name="agent_q_sokoban")
