"""Hi-Agent on Sokoban."""

from dataclasses import replace

from bough.methods.hi_agent import hi_agent
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def hi_agent_sokoban(*, frozen: bool = False) -> Run:
    """Hi-Agent (arXiv 2510.14388) on Sokoban: a planner and an executor with weights of their own.

    Tuned: a warm-up after which a quarter of the rooms are solved, a larger learning rate and more steps than those of
    the world, which has one policy. Whole paths are compared, since a room pays at its end only: the paper's foresight
    advantage is `hi_agent` with its own `subgoals`, which is not measured here.

    Args:
        frozen: Whether the executor keeps its weights after the warm-up, for comparison.
    """
    world = sokoban()
    world = world.replace(
        optimizer=replace(world.optimizer, learning_rate=5e-4, minibatches=2),
        warmup=replace(world.warmup, learning_rate=3e-3),
        evaluation=replace(world.evaluation, every=50),
        steps=200,
    )
    return hi_agent(world, subgoals=0, frozen=frozen).replace(name="hi_agent_sokoban")
