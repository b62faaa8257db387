"""Multi-hop questions in one turn: the policy writes the documents that a search would find."""

from bough.context import SearchBlocks
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.reward import EnvReward, MarkReward
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.self_search import SelfSearch

GRAPH = KnowledgeGraph(
    entities=60, relations=3, distractors=0, alias_rate=0.0, document_words=0, sentences=1, split_by="questions"
)


def self_search() -> World:
    """SSRL (arXiv 2508.10874) with a model that learns the facts in its warm-up: a search engine in its weights.

    Assumes an oracle for the warm-up. Held-out questions combine facts of training questions in a new way. Take
    `credit='MaskedSpans(credit=Grpo())'` to keep the information out of the loss, as in the paper.
    """
    return World(
        name="self_search",
        env=SelfSearch(source=GRAPH),
        policy=Tiny(layers=2, width=128, heads=4, context_tokens=512),
        parser=SearchBlocks(),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=128),
        rewards=(EnvReward(weight=0.9), MarkReward(mark="format", weight=0.1)),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=300, epochs=10, learning_rate=2e-3, batch_tokens=2048),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=300),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=20),
    )
