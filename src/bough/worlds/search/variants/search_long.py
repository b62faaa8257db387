"""Chains of seven to nine facts, each searched and read: fifteen to nineteen turns."""

from dataclasses import replace

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.search.env import SearchQa
from bough.worlds.search.knowledge import KnowledgeGraph

GRAPH = KnowledgeGraph(
    entities=1000,
    people=True,
    relations=12,
    hops=(7, 9),
    forward=True,
    distractors=0,
    alias_rate=0.0,
    facts_per_document=1,
    document_words=0,
    sentences=1,
    words=48,
)
ENV = SearchQa(source=GRAPH, top=1, snippet_words=0, evidence_reward=1.0, max_calls=40, max_errors=4)
SHORT = replace(ENV, source=replace(GRAPH, hops=(2, 4)))

TOO_EARLY = Warmup(demonstrations=600, epochs=2, learning_rate=1e-3, batch_tokens=2048, shortcuts=0.06)
LONG = Warmup(demonstrations=2000, epochs=3, learning_rate=2e-3, batch_tokens=2048, then=TOO_EARLY)


def search_long() -> World:
    """Questions about 7 to 9 facts in a row, each searched and read; long chains as in WebLeaper (arXiv 2510.24697).

    Assumes an oracle for the warm-up. Success takes 15 to 19 turns, up to 41 with detours. States recur: a search that
    lists nothing new returns to the same state. Half of the reward is for facts found, so a path that stops early has a
    lower return. The warm-up imitates short chains, then long ones, without mistakes; from short ones the model learns
    sooner to copy the last name and the next relation of the question. Then it imitates a few demonstrations that
    answer too early, at 6 % of their turns. So each turn is a choice: go on, or answer. The page of the world `search`
    has the results of the warm-up.
    """
    return World(
        name="search_long",
        env=ENV,
        policy=Tiny(layers=3, width=64, heads=2, context_tokens=2048),
        parser=ToolCalls(),
        limits=Limits(turns=41),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=6000, epochs=6, learning_rate=3e-3, batch_tokens=2048, env=SHORT, then=LONG),
        schedule=Schedule(steps=30, batch_tasks=2),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=10),
    )
