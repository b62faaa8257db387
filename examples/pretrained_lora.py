"""Adapters on a pretrained model: `bough train examples/pretrained_lora.py policy.path=FOLDER_OF_A_MODEL`.

The folder is one that `save_pretrained` of transformers writes: configuration, weights, tokenizer with a chat template.
"""

from bough.context import Window
from bough.engine import Local, Sampling
from bough.learner import Optimizer
from bough.objective import Kl, PpoClip
from bough.policy import Lora, Pretrained
from bough.reward import EnvReward, Format
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Run, Schedule, Tasks, World
from bough.worlds.frozenlake import FrozenLake


def world() -> World:
    """No warm-up: the model follows instructions. An answer of more than one line costs 0.1."""
    return World(
        name="frozenlake_lora",
        env=FrozenLake(size=4),
        policy=Pretrained(path="model", lora=Lora(rank=16, alpha=32.0), dtype="bfloat16", context_tokens=1024),
        context=Window(turns=3),
        limits=Limits(turns=10),
        sampling=Sampling(max_tokens=16),
        rewards=(EnvReward(), Format(penalty=0.1)),
        regularizers=(Kl(coefficient=0.001),),
        optimizer=Optimizer(learning_rate=2e-5, warmup_steps=5),
        schedule=Schedule(steps=100, batch_tasks=8),
        execution=Execution(engine=Local(slots=64)),
        tasks=Tasks(split="train", count=500),
        evaluation=Evaluation(tasks=Tasks(split="test", count=50), every=20),
    )


def run() -> Run:
    """DAPO's upper clip on this world."""
    return world().run(objective=PpoClip(high=0.28))
