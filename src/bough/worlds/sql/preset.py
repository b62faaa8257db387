"""Text-to-SQL: read how a database stores a word, then answer a question with one query."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.sql.env import Sql
from bough.worlds.sql.generated import GeneratedQuestions


def sql() -> World:
    """Generated questions over one table, in the multi-turn form of SkyRL-SQL and ReEx-SQL (arXiv 2505.12768).

    Assumes an oracle for the warm-up. The schema does not show how a column stores a word, so an agent without
    queries guesses. Most demonstrations guess; reinforcement learning teaches the policy to query first.
    """
    questions = GeneratedQuestions(tiers=(2,), databases=800, tables=1, rows=8, columns=1, phrasings=1)
    return World(
        name="sql",
        env=Sql(questions=questions, max_queries=2, oracle="lookups", show_types=False, rows_shown=5),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        parser=ToolCalls(),
        limits=Limits(turns=3),
        sampling=Sampling(max_tokens=48),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=4000, epochs=7, learning_rate=3e-3, batch_tokens=2048, shortcuts=0.7),
        schedule=Schedule(steps=100, batch_tasks=16),
        tasks=Tasks(split="train", count=4000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=25),
    )
