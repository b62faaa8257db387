"""GRPO with success replay on FrozenLake in text: a success of earlier in each group that only fails.

Paper: ARPO, policy optimization for GUI agents with experience replay (arXiv 2505.16282). Assumes tasks that come
again: the pool is as small as the demonstrations of the warm-up allow, so that each task is seen a dozen times. Eight
successes a task, a spread below 0.05 and a mean below 0.2 are the authors', as are GRPO and clips of 0.2 and 0.3. Their
code computes the log-probabilities of what it replays anew, as if it had just been sampled; here they are those it was
sampled with. The penalty on divergence, which the paper does without, and the learning rates are grpo_frozenlake's: the
paper's are for a large model, this one learns from scratch.
"""

from dataclasses import replace

from bough.curate import SuccessReplay
from bough.objective import Kl, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run, Tasks


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="success_replay_frozenlake",
        advisers=(SuccessReplay(),),
        objective=Sum(terms=(PpoClip(high=0.3), Kl(coefficient=0.04))),
        tasks=Tasks(split="train", count=128),
    )
