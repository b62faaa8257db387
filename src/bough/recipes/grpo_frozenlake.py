"""GRPO on FrozenLake in text: from a few dozen demonstrations to an agent that crosses unseen lakes.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO, DAPO (2503.14476) for the wider upper clip; the environment in the
manner of RAGEN (2504.20073). Assumes an oracle for the warm-up, and that an observation tells all there is to know:
the agent reads the present map alone, each turn in a context of its own.
"""

from bough.context import Window
from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import FrozenLake
from bough.explore import Chains, Limits
from bough.objective import Kl, PpoClip, Sum
from bough.policy import Tiny
from bough.reward import EnvReward
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return Run(
        name="grpo_frozenlake",
        env=FrozenLake(size=5, corners=True, max_steps=14),
        policy=Tiny(layers=2, width=64, heads=4),
        context=Window(turns=1),
        explorer=Chains(n=8),
        limits=Limits(turns=14),
        sampling=Sampling(max_tokens=4),
        rewards=(EnvReward(),),
        credit=Grpo(),
        # Groups that tie stay in: there the divergence alone pulls, back to actions that the warm-up found possible.
        admit=(),
        objective=Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.04))),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2, warmup_steps=20),
        warmup=Warmup(demonstrations=96, epochs=6, learning_rate=1e-3, batch_tokens=1024),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=2000),
        heldout=Heldout(tasks=Tasks(split="test", count=300), every=20),
        threads=1,
    )
