"""New weights reach the engine while the event loop goes on."""

import asyncio
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.small import run as small

from bough.engine import Local
from bough.engine.generation import LocalEngine
from bough.engine.model import ServedPolicy
from bough.rollout import Deadlines
from bough.train import Runtime
from bough.train.trained import TrainedPolicy

LOAD_S = 0.3


class SlowEngine(LocalEngine):
    """Loads weights in `LOAD_S`."""

    threads: ClassVar[list[int]] = []
    in_thread = True

    @property
    def loads_in_thread(self) -> bool:
        return self.in_thread

    def load_weights(self, weights: Any, policy_version: int) -> None:
        time.sleep(LOAD_S)
        self.threads.append(threading.get_ident())
        super().load_weights(weights, policy_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """`Local`, with slow loads."""

    def build(self, policy: ServedPolicy) -> SlowEngine:
        return SlowEngine(Local(slots=4), policy.replica())


def synced(policy: TrainedPolicy) -> tuple[float, int]:
    """The canary's gap of a change of weights, and the ticks of another task meanwhile."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(LOAD_S / 20)
            ticks += 1

    async def main() -> float:
        ticker = asyncio.create_task(tick())
        try:
            return await policy.sync(moved=True)
        finally:
            ticker.cancel()

    with torch.no_grad():
        for weight in policy.policy.parameters().values():
            weight.add_(0.01)
    return asyncio.run(main()), ticks


def test_the_event_loop_goes_on_while_weights_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Runtime(small().replace(engine=Slow()), tmp_path, Deadlines()).main
    gap, ticks = synced(policy)
    assert gap < 1e-4, "the weights arrived"
    assert ticks >= 3
    assert SlowEngine.threads[-1] != threading.get_ident()
    monkeypatch.setattr(SlowEngine, "in_thread", False)
    gap, _ = synced(policy)
    assert gap < 1e-4
    assert SlowEngine.threads[-1] == threading.get_ident(), "an engine that is bound to its event loop loads in it"
