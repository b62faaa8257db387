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
from bough.context import Context, Full, Window
from bough.explore import Waits
from bough.train import Workshop
from bough.train.loop import reward
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


def gap(shop: Workshop, batch: Batch) -> float:
    """The largest difference between behaviour and learner, nats."""
    return float((shop.learner.logprobs(batch) - batch.rollout_logprob).abs().max())


@pytest.mark.parametrize("context", [Full(), Window(turns=1), Window(turns=2), Window(turns=64)], ids=str)
def test_the_learner_reads_what_the_engine_read(context: Context, tmp_path: Path) -> None:
    run = replace(small(), context=context, engine=Fronted(front=Recorder))

    async def grown(shop: Workshop, seed: int) -> tuple[list[Credited], tuple[Tree, ...]]:
        trees = (await shop.grove.grow(run.explorer, await shop.tasks_from(seed * run.batch_tasks), seed=seed)).trees
        return run.credit(reward(trees, run.rewards)), trees

    async def main() -> None:
        shop = Workshop(run, tmp_path, Waits())
        recorder = cast("Recorder", shop.engine)
        await shop.sync(moved=False)
        for seed in range(2):
            recorder.heard.clear()
            credited, trees = await grown(shop, seed)
            assert sum(len(counted(tree)) for tree in trees) == 12
            batch = pack(credited)
            assert trained(batch) == written(recorder)
            assert gap(shop, batch) < 1e-5
            shop.learner.step(replace(batch, positive=torch.rand(len(batch.at))), run.objective, run.share)
            await shop.sync(moved=True)
        edits = sum(int((tree.kind == Kind.EDIT).sum()) for tree in trees)
        assert (edits > 0) == (isinstance(context, Window) and context.turns < run.limits.turns)
        await shop.close()

    asyncio.run(main())
