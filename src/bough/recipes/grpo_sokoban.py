"""GRPO on Sokoban in text: push the box onto its target in rooms never seen before.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO; the environment in the manner of RAGEN (arXiv 2504.20073).
Assumes nothing of the environment but an oracle for the warm-up. A box pushed into a corner cannot be pulled out, so
the agent has to look ahead; steps that undo each other are punished by nothing but the horizon.
"""

from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import Sokoban
from bough.explore import Chains, Limits
from bough.objective import PpoClip
from bough.policy import Tiny
from bough.reward import EnvReward
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return Run(
        name="grpo_sokoban",
        env=Sokoban(size=6),
        policy=Tiny(layers=2, width=128, heads=4),
        explorer=Chains(n=8),
        limits=Limits(turns=14),
        sampling=Sampling(max_tokens=4),
        rewards=(EnvReward(),),
        credit=Grpo(),
        objective=PpoClip(),
        optimizer=Optimizer(learning_rate=3e-4, parts=2),
        warmup=Warmup(demonstrations=200, epochs=15, learning_rate=2e-3, batch_tokens=2048),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=1000),
        heldout=Heldout(tasks=Tasks(split="test", count=300), every=20),
        threads=1,
    )
