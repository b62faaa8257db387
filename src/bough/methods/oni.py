"""ONI (arXiv 2410.23022)."""

from bough.hooks import Oni
from bough.hooks.oni import Variant
from bough.needs import POLICY
from bough.train import Run, World


def oni(
    world: World,
    *,
    judge: str = POLICY,
    variant: Variant = "retrieval",
    goal: str = "",
    coef: float = 0.4,
    extrinsic: float = 1.0,
    delay_steps: int | None = 1,
) -> Run:
    """ONI (arXiv 2410.23022): a model labels what the agent reads, beside the run; good observations are paid.

    Assumes observations that recur between paths, such as messages of a game; see `Oni`, with `caption` for a part of
    an observation. Set `judge` and `models`, else the policy labels itself. `delay_steps=None` never waits for it.
    The paper's trainer is PPO; here the rewards go to GRPO, and a success keeps its weight (`extrinsic`), which is .1
    or 10 in the paper, or 0 without rewards of the environment.
    """
    return world.run(
        hooks=(Oni(role=judge, variant=variant, goal=goal, coef=coef, extrinsic=extrinsic, delay_steps=delay_steps),)
    )
