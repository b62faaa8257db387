"""Adapters on a pretrained model: `bough train examples/pretrained_lora.py policy.path=FOLDER_OF_A_MODEL`.

The folder is one that `save_pretrained` of transformers writes: configuration, weights, tokenizer with a chat template.
"""

from bough.context import Window
from bough.engine import Local, Sampling
from bough.env import FrozenLake
from bough.explore import Chains, Limits
from bough.objective import Kl, PpoClip, Sum
from bough.policy import Lora, Pretrained
from bough.reward import EnvReward, Format
from bough.train import Evaluation, Optimizer, Run, Tasks


def run() -> Run:
    """Train without a warm-up: the model can read, and answers of more than one line cost something."""
    return Run(
        name="lora_frozenlake",
        env=FrozenLake(size=4),
        policy=Pretrained(path="model", lora=Lora(rank=16, alpha=32.0), dtype="bfloat16", context_tokens=1024),
        context=Window(turns=3),
        explorer=Chains(n=8),
        limits=Limits(turns=10),
        sampling=Sampling(max_tokens=16),
        engine=Local(slots=64),
        rewards=(EnvReward(), Format(penalty=0.1)),
        objective=Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.001))),
        optimizer=Optimizer(learning_rate=2e-5, warmup_steps=5),
        steps=100,
        batch_tasks=8,
        tasks=Tasks(split="train", count=500),
        heldout=Evaluation(tasks=Tasks(split="test", count=50), every=20),
    )
