"""Multi-hop questions over a generated corpus: search, read, answer."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.search.env import SearchQa
from bough.worlds.search.knowledge import KnowledgeGraph

GRAPH = KnowledgeGraph(
    entities=2000,
    relations=3,
    hops=(2, 2),
    distractors=1,
    alias_rate=0.0,
    facts_per_document=1,
    document_words=0,
    sentences=1,
    words=64,
)


def search() -> World:
    """Questions of two facts, found by two searches, far smaller than Search-R1 (arXiv 2503.09516).

    Assumes an oracle for the warm-up. Its demonstrations often answer before both searches; reinforcement learning
    teaches the policy to search first. No entity of a held-out question occurs in training.
    """
    return World(
        name="search",
        env=SearchQa(source=GRAPH, top=2, snippet_words=12, max_calls=5, max_errors=0),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        parser=ToolCalls(),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=6000, epochs=7, learning_rate=3e-3, batch_tokens=1024, shortcuts=0.2),
        schedule=Schedule(steps=40, batch_tasks=16),
        tasks=Tasks(split="train", count=6000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=20),
    )
