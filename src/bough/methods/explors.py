"""ExploRS of Reward Design for RL Agents (arXiv 2503.21949)."""

from bough.credit import StepGrpo
from bough.hooks import ExploRs
from bough.train import Run, World


def explors(
    world: World,
    *,
    scale: float = 0.1,
    largest: float = 0.1,
    rate: float = 0.5,
    bound: float = 0.1,
    discount: float = 0.99,
) -> Run:
    """ExploRS (Reward Design for RL Agents, arXiv 2503.21949; NeurIPS 2022): learned rewards and a bonus of novelty.

    Assumes states with keys that recur, and an environment that pays seldom. The tables of `ExploRs` pay for actions
    that led to more than the state's mean return, and for states that were seldom visited; both shrink or are bounded,
    and the world's rewards stay. Credit is the return to go, compared among the turns of a task with the same number;
    the authors use REINFORCE with a learned value in small worlds. The defaults keep the pay of a turn small against a
    success, here 1.

    This is the self-designed part. The teacher-driven and adaptive parts are, for small processes given as tables, the
    linear program of `bough.reward.teacher_design`, from Python.

    Try: `bough train explors --on frozenlake`
    """
    hook = ExploRs(scale=scale, largest=largest, rate=rate, bound=bound, discount=discount)
    return world.run(hooks=(hook,), credit=StepGrpo(discount=discount, std="batch"))
