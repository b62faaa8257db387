"""Step-GRPO on FrozenLake in text: first turns against first turns, second against second.

Paper: R1-Router (arXiv 2505.22095). Experimental: the paper was not available, the rule is its idea as others describe
it. Assumes that turns of the same number are comparable, and a reward for each turn, which the paper has from a judge.
FrozenLake pays at the goal alone, so that what counts for a turn is what comes after it, discounted by 0.95 a turn. The
loss and its numbers are those of grpo_frozenlake.
"""

from dataclasses import replace

from bough.credit import StepGrpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="step_grpo_frozenlake",
        credit=StepGrpo(discount=0.95),
    )
