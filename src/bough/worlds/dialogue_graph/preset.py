"""Conversational tree search: questions of users, and a dialogue graph to answer them from."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.dialogue_graph.env import DialogueGraph


def dialogue_graph(branching_factor: int = 3, depth: int = 2) -> World:
    """Conversational tree search (arXiv 2303.10227) on a small generated graph.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up.

    Args:
        branching_factor: Edges of a node.
        depth: Edges from the start to an answer.
    """
    return World(
        name="dialogue_graph",
        env=DialogueGraph(branching_factor=branching_factor, depth=depth),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=6),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=40, epochs=6, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=140),
        evaluation=Evaluation(tasks=Tasks(split="test", count=15), every=20),
    )
