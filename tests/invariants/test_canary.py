"""Invariant 6: after every weight sync engine and learner agree on the canary tokens, and have moved."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.engines import Coarse, Fronted, Other, Unsynced
from tests.small import run as small

from bough.batch import pack
from bough.engine import Engine, Local, Replicas
from bough.engine.decoder import Decoder
from bough.engine.worker import EngineWorker
from bough.engine.worker_process import Message
from bough.reward import reward_trees
from bough.rollout import Deadlines
from bough.store import read_metrics
from bough.train import NoLearningSignal, Run, Runtime, start


async def two_syncs(run: Run, folder: Path) -> tuple[float, float]:
    """Before and after one update."""
    runtime = Runtime(run, folder, Deadlines())
    try:
        before = await runtime.sync(moved=False)
        grown = await runtime.rollouts.run(run.method.explorer, runtime.train_tasks[:2], seed=0)
        batch = pack(run.method.credit(reward_trees(grown.trees, run.world.rewards)))
        runtime.main.learner.step(replace(batch, positive=torch.ones(len(batch.at))), run.loss, run.method.normalizer)
        runtime.reset_caches()
        after = await runtime.sync(moved=True)
        if run.name == "twice":
            await runtime.sync(moved=True)
        return before, after
    finally:
        await runtime.close()


def test_every_sync_of_a_run(tmp_path: Path) -> None:
    directory = start(small(), tmp_path, terminal=False)
    gaps = [float(row["policy/canary_gap"]) for row in read_metrics(directory.metrics) if "policy/canary_gap" in row]
    assert len(gaps) >= 2
    assert max(gaps) < 1e-4


def test_a_sync_that_arrives(tmp_path: Path) -> None:
    assert max(asyncio.run(two_syncs(small(), tmp_path))) < 1e-4


@pytest.mark.parametrize(
    ("front", "rate", "told"),
    [
        (Unsynced, 1e-2, "differs from the learner's by .* The engine did not load the new weights"),
        (Unsynced, 1e-7, "are exactly the old ones although the weights changed; the sync transferred nothing"),
        (Coarse, 1e-3, "need at most .* or computes another model"),
        (Other, 1e-3, "differs from the learner's by .* or computes another model"),
    ],
)
def test_a_sync_that_does_not(front: Callable[[Engine], Engine], rate: float, told: str, tmp_path: Path) -> None:
    run = small()
    run = run.replace(engine=Fronted(front=front), optimizer=replace(run.world.optimizer, learning_rate=rate))
    with pytest.raises(NoLearningSignal, match=told):
        asyncio.run(two_syncs(run, tmp_path))


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (Replicas(engine=Local(slots=4)), "of the engine process 1 differs from the learner's"),
        (Local(slots=4, processes=2), "of the engine process 1, through its cache differs from the learner's"),
    ],
)
def test_every_process_is_read_and_its_cache(
    engine: Replicas | Local, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes of their own weights lose a load; processes of shared weights keep the cache of the old ones."""
    send, losing = EngineWorker.send, list[EngineWorker]()

    def sends(worker: EngineWorker, message: Message) -> None:
        # The second reset of the cache does arrive.
        if worker not in losing or getattr(message, "policy_version", None) is None:
            send(worker, message)

    monkeypatch.setattr(EngineWorker, "send", sends)

    async def main() -> None:
        runtime = Runtime(small().replace(engine=engine), tmp_path, Deadlines())
        try:
            await runtime.sync(moved=False)
            losing.append(runtime.engine._workers[1])
            with torch.no_grad():
                for weight in runtime.policy.parameters().values():
                    weight.mul_(1.05)
            await runtime.sync(moved=True)
        finally:
            losing.clear()
            await runtime.close()

    with pytest.raises(NoLearningSignal, match=told):
        asyncio.run(main())


def test_a_cache_of_old_weights_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keeps(decoder: Decoder, weights: Mapping[str, torch.Tensor], policy_version: int) -> None:
        decoder._model.load(weights)
        decoder.policy_version = policy_version

    monkeypatch.setattr(Decoder, "load", keeps)
    with pytest.raises(NoLearningSignal, match="of the engine, through its cache differs from the learner's"):
        asyncio.run(two_syncs(small(), tmp_path))


def test_rounding_in_bfloat16_is_no_fault_of_the_sync(tmp_path: Path) -> None:
    run = small()
    run = run.replace(engine=Fronted(front=Coarse), policy=replace(run.world.policy, dtype="bfloat16"))
    assert max(asyncio.run(two_syncs(run, tmp_path))) > 0.1


def test_a_step_that_changes_no_weight_is_no_fault_of_the_sync(tmp_path: Path) -> None:
    asyncio.run(two_syncs(small().replace(name="twice"), tmp_path))
