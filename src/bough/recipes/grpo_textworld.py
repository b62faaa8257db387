"""GRPO on TextWorld: text games in the real engine, from a few dozen demonstrations to unseen houses.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO; TextWorld (arXiv 1806.11532) for the engine.
Assumes an oracle for the warm-up and admissible commands in the prompt: a model of a million weights that has read
nothing else has to copy the name of a thing from what it reads, and the list is where it finds it.
"""

from bough.context import Full
from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import TextWorld
from bough.explore import Chains, Limits
from bough.objective import PpoClip
from bough.policy import Tiny
from bough.reward import EnvReward
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in under half an hour on two CPU cores. Needs the extra `textworld`."""
    return Run(
        name="grpo_textworld",
        env=TextWorld(max_steps=16),
        policy=Tiny(layers=3, width=128, heads=4, context_tokens=2048),
        context=Full(),
        explorer=Chains(n=8),
        limits=Limits(turns=16),
        sampling=Sampling(max_tokens=12),
        rewards=(EnvReward(),),
        credit=Grpo(),
        objective=PpoClip(),
        optimizer=Optimizer(learning_rate=5e-4, parts=2),
        warmup=Warmup(demonstrations=100, epochs=15, learning_rate=2e-3, batch_tokens=4096),
        steps=80,
        batch_tasks=16,
        tasks=Tasks(split="train", count=200),
        heldout=Heldout(tasks=Tasks(split="test", count=100), every=20),
    )
