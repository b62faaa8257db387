"""Chains of seven to ten facts: fifteen to twenty-one turns of search and read."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.env import KnowledgeGraph, SearchQa
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World

GRAPH = KnowledgeGraph(
    entities=1500, relations=4, hops=(7, 10), distractors=1, alias_rate=0.0, document_words=0, sentences=1, words=56
)


def search_long() -> World:
    """Questions of 7 to 10 facts, each found by a search and a read; as in WebLeaper (arXiv 2510.24697), long chains.

    Assumes an oracle for the warm-up. Success takes 15 to 21 turns, up to 40 with detours. States recur: a search that
    lists nothing new returns to the same state, and so does a document read twice. Paths of one question share states.
    Half of the reward is for facts found, so a path that stops early has a lower return.
    """
    return World(
        name="search_long",
        env=SearchQa(source=GRAPH, top=2, snippet_words=0, evidence_reward=1.0, max_calls=40, max_errors=4),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=4096),
        parser=ToolCalls(),
        limits=Limits(turns=41),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=1000, epochs=4, learning_rate=3e-3, batch_tokens=4096),
        schedule=Schedule(steps=100, batch_tasks=8),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=1000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=25),
    )
