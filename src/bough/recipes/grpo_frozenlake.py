"""GRPO on FrozenLake in text: from a handful of demonstrations to an agent that crosses unseen lakes.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO; the environment in the manner of RAGEN (arXiv 2504.20073).
Assumes nothing of the environment but an oracle for the warm-up.
"""

from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import FrozenLake
from bough.explore import Chains, Limits
from bough.objective import Entropy, PpoClip, Sum
from bough.policy import Tiny
from bough.reward import EnvReward
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return Run(
        name="grpo_frozenlake",
        env=FrozenLake(size=5),
        policy=Tiny(layers=2, width=128, heads=4),
        explorer=Chains(n=8),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=4),
        rewards=(EnvReward(),),
        credit=Grpo(),
        objective=Sum(terms=(PpoClip(high=0.28), Entropy(coefficient=0.01))),
        optimizer=Optimizer(learning_rate=5e-4, parts=2),
        warmup=Warmup(demonstrations=24, epochs=10, learning_rate=2e-3),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=2000),
        heldout=Heldout(tasks=Tasks(split="test", count=300), every=10),
    )
