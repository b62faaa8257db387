"""GRPO on TextWorld: text games in the real engine, from demonstrations to houses never entered before.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO, DAPO (2503.14476) for the wider upper clip; TextWorld (1806.11532) for
the engine. Assumes an oracle for the warm-up and admissible commands in the prompt: a model of half a million weights
that has read nothing else copies the name of a thing from what it reads, and the list is where it finds it.
"""

from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import TextWorld
from bough.explore import Chains, Limits
from bough.objective import Entropy, PpoClip, Sum
from bough.policy import Tiny
from bough.reward import EnvReward, InvalidAction
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in under half an hour on two CPU cores. Needs the extra `textworld`."""
    return Run(
        name="grpo_textworld",
        env=TextWorld(levels=(1, 2), max_steps=12),
        policy=Tiny(layers=2, width=128, heads=4),
        explorer=Chains(n=8),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=8),
        rewards=(EnvReward(), InvalidAction(penalty=0.05)),
        credit=Grpo(),
        objective=Sum(terms=(PpoClip(high=0.28), Entropy(coefficient=0.01))),
        optimizer=Optimizer(learning_rate=4e-4, parts=2),
        warmup=Warmup(demonstrations=200, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        steps=150,
        batch_tasks=16,
        tasks=Tasks(split="train", count=400),
        heldout=Heldout(tasks=Tasks(split="test", count=150), every=25),
        threads=1,
    )
