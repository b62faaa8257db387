"""iStar (arXiv 2509.19199)."""

from bough.credit import IStar
from bough.hooks import ImplicitReward
from bough.train import Run, World


def istar(
    world: World, *, beta: float = 0.05, learning_rate: float = 1e-4, weight: float = 1.0, as_released: bool = False
) -> Run:
    """IStar (arXiv 2509.19199): a copy of the policy learns by DPO which paths are better; its log-ratio pays steps.

    Assumes tasks that succeed on some paths and fail on others, else no pair teaches the model. It costs the memory of
    a second policy with its moments, or of second adapters, and two more passes over each batch. The paper's learning
    rate for the model is that of 7-billion-parameter policies. `as_released`: the model compares means over steps, and
    steps are compared with first steps; see `ImplicitReward` and `IStar`. Also known as OPRL.
    """
    return world.run(
        hooks=(ImplicitReward(beta=beta, learning_rate=learning_rate, as_released=as_released),),
        credit=IStar(weight=weight, as_released=as_released),
    )
