"""HiPER (arXiv 2602.16165)."""

from dataclasses import replace

from bough.context import PlanAct, Planned
from bough.credit import Hae
from bough.critics import ValueHead
from bough.methods.ppo import ppo
from bough.train import Run, World


def hiper(world: World, *, every: int = 3) -> Run:
    """HiPER (arXiv 2602.16165): answers keep or change a subgoal; subgoals and actions have advantages of their own.

    Assumes tasks with parts, and actions short enough to be written beside a subgoal. In demonstrations a subgoal is
    the oracle's next `every` actions. Discount and both lambdas of 0.95 and the critic's three heads are the released
    code's. Its penalty for keeping a subgoal is left out: there success pays 10. One path of each task, as in `ppo`.
    """
    return ppo(with_subgoals(world, every)).replace(credit=Hae(), critic=ValueHead(heads=("low", "high", "switch")))


def with_subgoals(world: World, every: int) -> World:
    """The world with a subgoal of up to `every` actions before each action.

    An answer may have as many tokens as its `every` + 1 actions, and 16 for the tags.
    """
    tokens = (every + 1) * world.sampling.max_tokens + 16
    return world.replace(
        parser=PlanAct(every=every),
        context=Planned(context=world.context),
        sampling=replace(world.sampling, max_tokens=tokens),
    )
