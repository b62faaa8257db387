"""GRPO on TextWorld: text games in the real engine, from demonstrations to houses never entered before.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO, DAPO (2503.14476) for the wider upper clip; TextWorld (1806.11532) for
the engine, verl-agent (2505.10978) for a prompt that says the task and the admissible commands at every turn. Assumes
an oracle for the warm-up. A model of half a million weights that has read nothing else takes a command from the list
that it reads, and it learns to compare that list with the task where the two stand side by side.
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
        env=TextWorld(levels=(1, 2), max_steps=12, repeat_task=True),
        policy=Tiny(layers=2, width=128, heads=8),
        explorer=Chains(n=8),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=8),
        rewards=(EnvReward(), InvalidAction(penalty=0.02)),
        credit=Grpo(),
        objective=Sum(terms=(PpoClip(high=0.28), Entropy(coefficient=0.01))),
        optimizer=Optimizer(learning_rate=4e-4, minibatches=4, warmup_steps=20),
        warmup=Warmup(demonstrations=100, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        steps=175,
        batch_tasks=16,
        tasks=Tasks(split="train", count=400),
        heldout=Heldout(tasks=Tasks(split="test", count=150), every=25),
        threads=1,
    )
