"""Engines that free the device while the policy learns."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.small import run as small

from bough.config import ConfigError
from bough.engine import Local, Replicas, Vllm
from bough.engine.generation import LocalEngine
from bough.engine.model import ServedPolicy
from bough.learner import Learner
from bough.objective import Tis
from bough.policy import Tiny
from bough.train import Checkpointing, start
from bough.train.check import check

CALLS = list[str]()
"""Calls of the engine and the learner, equal ones in a row once."""


def note(call: str) -> None:
    if CALLS[-1:] != [call]:
        CALLS.append(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Napping:
    """`Local`, with `Sleeping`."""

    def build(self, policy: ServedPolicy) -> "NappingEngine":
        return NappingEngine(Local(slots=32), policy.replica())


class NappingEngine(LocalEngine):
    sleeps, asleep = True, False

    async def generate(self, request: Any) -> Any:
        assert not self.asleep
        note("generate")
        return await super().generate(request)

    def load_weights(self, weights: Any, policy_version: int) -> None:
        assert not self.asleep
        note("load")
        super().load_weights(weights, policy_version)

    def sleep(self) -> None:
        self.asleep = True
        note("sleep")

    def wake(self) -> None:
        self.asleep = False
        note("wake")


def test_an_engine_sleeps_while_the_policy_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Learner.learn

    def learns(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        note("learn")
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn", learns)
    CALLS.clear()
    run = small().replace(
        engine=Napping(),
        warmup=replace(small().world.warmup, epochs=2),
        filters=(),
        steps=2,
        evaluation=replace(small().world.evaluation, every=100),
        checkpointing=Checkpointing(every=100),
    )
    start(run, tmp_path, terminal=False)
    update = ["sleep", "learn", "wake", "load"]
    assert [call for call in CALLS if call != "generate"] == ["load", *update, *update, *update]
    steps = CALLS[CALLS.index("generate") :]
    assert steps[:5] == ["generate", *update]


def test_an_engine_that_sleeps_needs_updates_without_growth() -> None:
    engine = Vllm(sleeps=True)
    check(small().replace(engine=engine))
    with pytest.raises(ConfigError, match=r"engine.*needs updates during which no trees grow.*set staleness=0"):
        check(small().replace(engine=engine, staleness=1, objective=Tis()))


def test_vllm_sleeps_on_a_gpu_only() -> None:
    with pytest.raises(ValueError, match=r"Vllm.sleeps: got True for a policy on a CPU; need a GPU"):
        Vllm(sleeps=True).build(Tiny(device="cpu").build(["a"]))
    for name in ("sleeps", "adapters"):
        with pytest.raises(ValueError, match=rf"Replicas.engine: got Vllm\({name}=True\)"):
            Replicas(engine=Vllm(**{name: True}))
