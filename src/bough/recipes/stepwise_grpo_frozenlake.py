"""Step-wise GRPO on FrozenLake in text: the reward of the last turn, broadcast to the turns before it.

Paper: Trinity-RFT (arXiv 2505.17826), a framework, after rLLM. Assumes that the last turn is paid for the whole path,
as it is here; what other turns are paid does not count. In the released code a path that is alone in its group keeps
its reward; here it gets nothing. The loss and its numbers are those of grpo_frozenlake.
"""

from dataclasses import replace

from bough.credit import StepwiseGrpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="stepwise_grpo_frozenlake",
        credit=StepwiseGrpo(),
    )
