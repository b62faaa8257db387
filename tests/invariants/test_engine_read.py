"""Invariant 1, end to end: what the engine read is what the learner conditions on, and each token is trained once."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from tests.engines import Fronted, Recorder
from tests.small import run as small

from bough.batch import Batch, pack
from bough.context import AdmissibleAction, Context, Full, Window
from bough.engine import Sampling
from bough.explore import Chains, EpTree
from bough.reward import reward_trees
from bough.rollout import Deadlines
from bough.train import Runtime
from bough.tree import Credited, Kind, Tree, counted

Read = tuple[tuple[int, ...], int, float]
"""What was read, what was written next, and its log-probability."""


def written(heard: Recorder) -> Counter[Read]:
    """By the engine."""
    return Counter(
        ((*request.prompt_tokens, *completion.tokens[:place]), token, torch.tensor(logprob).item())
        for request, completion in heard.heard
        for place, (token, logprob) in enumerate(zip(completion.tokens, completion.logprobs, strict=True))
    )


def trained(batch: Batch) -> Counter[Read]:
    """By the learner."""
    begin = (batch.at - batch.position[batch.at]).tolist()
    return Counter(
        (tuple(batch.tokens[start:at].tolist()), int(batch.tokens[at]), rollout_logprob)
        for start, at, rollout_logprob in zip(begin, batch.at.tolist(), batch.rollout_logprob.tolist(), strict=True)
    )


def gap(runtime: Runtime, batch: Batch) -> float:
    """The largest difference between behaviour and learner, nats."""
    return float((runtime.main.learner.logprobs(batch) - batch.rollout_logprob).abs().max())


@pytest.mark.parametrize("context", [Full(), Window(turns=1), Window(turns=2), Window(turns=64)], ids=str)
def test_the_learner_reads_what_the_engine_read(context: Context, tmp_path: Path) -> None:
    run = small().replace(context=context, engine=Fronted(front=Recorder))

    async def grown(runtime: Runtime, seed: int) -> tuple[list[Credited], tuple[Tree, ...]]:
        trees = (
            await runtime.rollouts.run(
                run.method.explorer, await runtime.tasks_from(seed * run.world.schedule.batch_tasks), seed=seed
            )
        ).trees
        return run.method.credit(reward_trees(trees, run.world.rewards)), trees

    async def main() -> None:
        runtime = Runtime(run, tmp_path, Deadlines())
        recorder = cast("Recorder", runtime.engine)
        await runtime.sync(moved=False)
        for seed in range(2):
            recorder.heard.clear()
            credited, trees = await grown(runtime, seed)
            assert sum(len(counted(tree)) for tree in trees) == 12
            batch = pack(credited)
            assert trained(batch) == written(recorder)
            assert gap(runtime, batch) < 1e-5
            runtime.main.learner.step(
                replace(batch, positive=torch.rand(len(batch.at))), run.loss, run.method.normalizer
            )
            await runtime.sync(moved=True)
        edits = sum(int((tree.kind == Kind.EDIT).sum()) for tree in trees)
        assert (edits > 0) == (isinstance(context, Window) and context.turns < run.world.limits.turns)
        await runtime.close()

    asyncio.run(main())


@pytest.mark.parametrize("explorer", [Chains(n=4), EpTree(chains=2)], ids=lambda explorer: type(explorer).__name__)
def test_under_a_grammar_both_choose_among_the_allowed_tokens(explorer: Chains | EpTree, tmp_path: Path) -> None:
    run = small().replace(parser=AdmissibleAction(), explorer=explorer, sampling=Sampling(max_tokens=12))

    async def main() -> None:
        runtime = Runtime(run, tmp_path, Deadlines())
        await runtime.sync(moved=False)
        trees = (await runtime.rollouts.run(explorer, await runtime.tasks_from(0), seed=0)).trees
        for tree in trees:
            acted = [info for info, kind in zip(tree.info, tree.kind, strict=True) if kind == Kind.ACTION]
            assert {info["text"] for info in acted if "text" in info} <= {"left", "right", "up", "down"}
        batch = pack(run.method.credit(reward_trees(trees, run.world.rewards)))
        assert bool((batch.allowed >= 0).all())
        forced = batch.rollout_logprob == 0
        assert 0 < int(forced.sum()) < len(forced)
        assert gap(runtime, batch) < 1e-5
        assert bool((runtime.main.learner.logprobs(batch)[forced] == 0).all())
        assert gap(runtime, replace(batch, allowed=torch.full_like(batch.allowed, -1))) > 1
        await runtime.close()

    asyncio.run(main())
