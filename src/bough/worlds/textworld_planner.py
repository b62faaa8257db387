"""TextWorld for a planner and an executor."""

from dataclasses import replace

from bough.env import PlannerExecutor
from bough.rollout import Limits
from bough.train import World
from bough.worlds.textworld import textworld


def textworld_planner(*, turns: int = 3) -> World:
    """TextWorld with two seats: "planner" writes a subgoal, and "executor" acts on it for up to `turns` commands.

    One policy acts for both seats, unless the run's `policies` have others. Needs the extra `textworld`. Assumes an
    oracle for the warm-up.
    """
    world = textworld()
    return world.replace(
        name="textworld_planner",
        env=PlannerExecutor(env=world.env, turns=turns),
        limits=Limits(turns=2 * world.limits.turns),
        warmup=replace(world.warmup, epochs=6),
    )
