"""Passages of a generated corpus: what they are about, in a few words, for retrieval by embeddings."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.passages import Passages

GRAPH = KnowledgeGraph(
    entities=400,
    relations=3,
    hops=(1, 1),
    distractors=1,
    alias_rate=0.0,
    facts_per_document=1,
    document_words=16,
    sentences=1,
    words=32,
)


def passages() -> World:
    """Rationales of passages for retrieval, far smaller than GRACE's (arXiv 2510.04506).

    Assumes an oracle for the warm-up, which is short. The method `grace` needs no reward of the environment:

        bough train grace --on passages rewards='[EnvReward(weight=0)]'
    """
    return World(
        name="passages",
        env=Passages(source=GRAPH, max_words=6),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=256),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=300, epochs=6, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=40, batch_tasks=8),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
