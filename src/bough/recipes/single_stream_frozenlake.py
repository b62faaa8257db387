"""Single-stream PO on FrozenLake in text: one path of each task, against what is remembered of the task.

Paper: Single-stream Policy Optimization (arXiv 2509.13232). Assumes returns from 0 to 1, and tasks that come again:
each of the pool is seen about six times. The tracker's numbers are the paper's (8 paths of memory, 0.875 to 0.96 kept,
half forgotten at 0.06 nats), as is the upper clip. The authors' code begins with samples of every task drawn before
training; here the first visit begins a task. The penalty on divergence, which the paper does without, and the learning
rates are those of grpo_frozenlake: the paper's 1e-6 is for a large model, this one learns from scratch.
"""

from dataclasses import replace

from bough.credit import SingleStream
from bough.curate import Tracker
from bough.explore import Chains
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="single_stream_frozenlake",
        explorer=Chains(n=1),
        advisers=(Tracker(),),
        credit=SingleStream(),
        batch_tasks=128,
    )
