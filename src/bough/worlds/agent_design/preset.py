"""Designs of agents on generated benchmarks: recombine, mutate and refine components."""

from bough.context import Window
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.agent_design.env import AgentDesign


def agent_design(max_edits: int = 6, target: float = 0.8) -> World:
    """Designs of agents (AgentSwift, arXiv 2506.06017) on generated benchmarks in place of real ones.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up, which evaluates every edit.

    Args:
        max_edits: Edits of an episode.
        target: Score of a success.
    """
    return World(
        name="agent_design",
        env=AgentDesign(max_edits=max_edits, target=target),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=max_edits),
        sampling=Sampling(max_tokens=8),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=60, epochs=6, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=20),
    )
