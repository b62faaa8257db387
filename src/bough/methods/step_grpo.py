"""Step-GRPO (R1-Router, arXiv 2505.22095)."""

from bough.credit import StepGrpo
from bough.train import Run, World


def step_grpo(world: World, *, discount: float = 0.95) -> Run:
    """Step-GRPO (R1-Router, arXiv 2505.22095): compares turns of one number with each other.

    Assumes comparable turns of one number, and a reward for each turn, which a judge gives in the paper. Experimental:
    the paper was not available, the rule is its idea as others describe it. The reward of a turn is what follows it,
    discounted.
    """
    return world.run(credit=StepGrpo(discount=discount))
