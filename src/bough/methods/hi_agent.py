"""Hi-Agent (arXiv 2510.14388)."""

from dataclasses import replace

from bough.env import PlannerExecutor, seats_of
from bough.explore import Chains
from bough.objective import Kl
from bough.train import OwnPolicy, Run, World


def hi_agent(world: World, *, turns: int = 3, n: int = 8, frozen: bool = False) -> Run:
    """Hi-Agent (arXiv 2510.14388): a planner and an executor with weights of their own, trained together.

    Assumes tasks with parts, and an oracle for the warm-up. Experimental: written from the abstract. The planner writes
    a subgoal, and the executor acts on it for up to `turns` turns. The planner's paths are compared by their returns,
    and so are the executor's, each with the group's mean and standard deviation (GRPO): the return of the executor's
    actions scores the subgoal. The paper samples several subgoals in one state; here the paths of a task branch at its
    start.
    A divergence from the warm-up replaces the world's regularizers: a bonus for entropy makes subgoals arbitrary.

    Args:
        world: A world for one agent, or one with the seats "planner" and "executor".
        turns: The executor's turns per subgoal, in a world for one agent.
        n: Paths of a task.
        frozen: Whether the executor keeps its weights after the warm-up.
    """
    if not seats_of(world.env):
        limits = replace(world.limits, turns=2 * world.limits.turns)
        world = world.replace(env=PlannerExecutor(env=world.env, turns=turns), limits=limits)
    return world.run(
        explorer=Chains(n=n), regularizers=(Kl(coefficient=0.02),), policies={"executor": OwnPolicy(frozen=frozen)}
    )
