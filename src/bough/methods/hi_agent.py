"""Hi-Agent (arXiv 2510.14388)."""

from dataclasses import replace

from bough.credit import Credit, ForkReward, Grpo, TreeRpo
from bough.env import PlannerExecutor, seats_of
from bough.explore import Chains, Subgoals
from bough.objective import Kl
from bough.roles import OwnPolicy
from bough.rollout import Explorer
from bough.train import Run, World
from bough.varying import constant


def hi_agent(
    world: World,
    *,
    turns: int = 3,
    subgoals: int = 4,
    tries: int = 2,
    to_end: bool = True,
    n: int = 8,
    frozen: bool = False,
) -> Run:
    """Hi-Agent (arXiv 2510.14388): a planner and an executor with weights of their own, trained together.

    Assumes tasks with parts, and an oracle for the warm-up. Experimental: written from the abstract. The planner writes
    several subgoals in one state, and the executor acts on each for up to `turns` turns, `tries` times. What comes of
    the tries scores the subgoal, compared with the other subgoals of the state (the foresight advantage); the
    executor's tries are compared with each other. One of the states reached is the next.

    The paper scores a subgoal by the executor's reward up to the next one: `to_end=False`, for worlds that pay on the
    way. Where rewards come at the end of an episode most subgoals would earn nothing. So by default every branch goes
    on to its end and is compared by its return. With `subgoals=0` whole paths are compared, as in GRPO.

    A divergence from the warm-up replaces the world's regularizers: a bonus for entropy makes subgoals arbitrary.

    Args:
        world: A world for one agent, or one with the seats "planner" and "executor".
        turns: The executor's turns per subgoal, in a world for one agent.
        subgoals: Subgoals of a state; 0 for paths that branch at the start only.
        tries: The executor's attempts at a subgoal.
        to_end: Whether every branch goes on to the end.
        n: Paths of a task, with `subgoals=0`.
        frozen: Whether the executor keeps its weights after the warm-up.
    """
    if not seats_of(world.env):
        limits = replace(world.limits, turns=2 * constant(world.limits.turns))
        world = world.replace(env=PlannerExecutor(env=world.env, turns=turns), limits=limits)
    explorer: Explorer = Chains(n=n)
    credit: Credit = Grpo()
    if subgoals:
        explorer = Subgoals(width=subgoals, tries=1 if frozen else tries, to_end=to_end)
        credit = TreeRpo() if to_end else ForkReward()
    return world.run(
        explorer=explorer,
        credit=credit,
        regularizers=(Kl(coefficient=0.02),),
        policies={"executor": OwnPolicy(frozen=frozen)},
    )
