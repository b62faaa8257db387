"""BFCL multi-turn, easiest tier: short episodes that list only the functions they need."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.bfcl.env import Bfcl


def bfcl() -> World:
    """BFCL's multi-turn episodes (Patil et al., ICML 2025; multi-turn calls as in tau-bench, arXiv 2406.12045).

    Needs `constraints/bfcl.txt`. Assumes an oracle for the warm-up. `Tiny` is too small to succeed here; take a
    pretrained model.
    """
    return World(
        name="bfcl",
        env=Bfcl(
            user_turns=3,
            oracle_calls=4,
            partial=True,
            stop_at_failure=True,
            distractors=0,
            short_descriptions=True,
            result_characters=400,
        ),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=4096),
        parser=ToolCalls(),
        limits=Limits(turns=10),
        sampling=Sampling(max_tokens=64),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=100, epochs=10, learning_rate=3e-3, batch_tokens=4096),
        schedule=Schedule(steps=50, batch_tasks=8),
        tasks=Tasks(split="train", count=100),
        evaluation=Evaluation(tasks=Tasks(split="test", count=16), every=25),
    )
