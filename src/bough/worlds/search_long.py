"""Chains of fifteen to eighteen facts, each found by a search: sixteen to nineteen turns."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.env import KnowledgeGraph, SearchQa
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World

GRAPH = KnowledgeGraph(
    entities=500,
    people=True,
    relations=24,
    hops=(15, 18),
    forward=True,
    distractors=0,
    alias_rate=0.0,
    facts_per_document=1,
    document_words=0,
    sentences=1,
    words=36,
)


def search_long() -> World:
    """Questions about 15 to 18 facts in a row, each found by a search; long chains as in WebLeaper (arXiv 2510.24697).

    Assumes an oracle for the warm-up. Success takes 16 to 19 turns, up to 41 with detours. States recur: a search that
    lists nothing new returns to the same state. Paths of one question share states. Half of the reward is for facts
    found, so a path that stops early has a lower return. The warm-up takes 24 passes: after the first, the policy
    copies the last name, and only later the next relation of the question. It then solves 3 % of the held-out
    questions: one wrong relation of 15 to 18 is enough to fail.
    """
    return World(
        name="search_long",
        env=SearchQa(source=GRAPH, top=1, snippet_words=12, evidence_reward=1.0, max_calls=40, max_errors=4),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=2048),
        parser=ToolCalls(),
        limits=Limits(turns=41),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=2000, epochs=24, learning_rate=6e-3, batch_tokens=1024),
        schedule=Schedule(steps=30, batch_tasks=2),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=15),
    )
