"""Hi-Agent (arXiv 2510.14388)."""

from bough.explore import Chains
from bough.train import OwnPolicy, Run, World


def hi_agent(world: World, *, n: int = 8, frozen: bool = False) -> Run:
    """Hi-Agent (arXiv 2510.14388): a planner and an executor with weights of their own, trained together.

    Assumes a world with the seats "planner" and "executor", such as `textworld_planner`. Experimental: written from the
    abstract. A subgoal is scored by what the executor makes of it: the planner's paths are compared by their return, and
    the executor's by theirs, each with the group's mean and standard deviation (GRPO). The paper samples several
    subgoals in one state; here paths of a task branch at its start.

    Args:
        world: With the two seats.
        n: Paths of a task.
        frozen: Whether the executor keeps its weights after the warm-up.
    """
    return world.run(explorer=Chains(n=n), policies={"executor": OwnPolicy(frozen=frozen)})
