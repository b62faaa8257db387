"""Models of roles that are copies of the policy: their weights, and that a server has none."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
import torch
from tests.small import run as small

from bough.config import ConfigError
from bough.engine import Local
from bough.engine.gated import GatedEngine
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.roles import EarlierVersion, StartingWeights, TrainedJudge
from bough.roles.models import JudgeWeights, ModelSource
from bough.rollout import Deadlines, RoleModel
from bough.train import NoLearningSignal, Runtime
from bough.train.canary import Canary
from bough.train.checked_engine import CheckedEngine
from bough.train.earlier import EarlierWeights

NO_MODEL = cast("RoleModel", None)


@pytest.mark.parametrize(
    "source", [StartingWeights(), EarlierVersion(), JudgeWeights()], ids=lambda it: type(it).__name__
)
def test_a_server_has_no_weights_to_copy(source: ModelSource) -> None:
    with pytest.raises(ConfigError, match=f"models={type(source).__name__}: got a server as policy.*need the model"):
        source.open_model(None, NO_MODEL)


def scored(engine: GatedEngine) -> tuple[float, ...]:
    return asyncio.run(engine.score((5, 6), (7, 8)))


def update(policy: Policy) -> None:
    """An update after which every score is another one."""
    with torch.no_grad():
        for weight in policy.parameters().values():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))


def test_an_earlier_version_has_the_weights_of_every_second_step_and_of_its_state() -> None:
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64).build(["a b"])

    def opened() -> tuple[EarlierWeights, GatedEngine]:
        engine = EarlierVersion(every=2).open_model(policy, NO_MODEL).engine
        assert isinstance(engine, GatedEngine)
        checked = CheckedEngine(engine, Canary((5, 6), (7, 8), tolerance=1e-4), Deadlines(), deadline_s=600)
        return EarlierWeights(2, checked, policy), engine

    earlier, engine = opened()
    theirs, own = [], []
    for number in range(4):
        update(policy)
        asyncio.run(earlier.begin_step(number, number + 1))
        theirs.append(scored(engine))
        own.append(scored(GatedEngine(Local().build(policy))))
    assert len(set(own)) == 4
    assert theirs == [own[0], own[0], own[2], own[2]]
    assert engine.policy_version == 3
    again, other = opened()
    assert scored(other) == own[3]
    again.load_state(earlier.state())
    asyncio.run(again.load_restored())
    assert scored(other) == own[2]
    assert other.policy_version == 3
    assert scored(GatedEngine(Local().build(policy))) == own[3], "the policy keeps its weights"


def test_a_run_renews_and_stores_the_earlier_version_of_a_role(tmp_path: Path) -> None:
    run = small().replace(models={"teacher": EarlierVersion(every=3)})
    runtime = Runtime(run, tmp_path, Deadlines())
    engine = runtime.models["teacher"].engine
    assert isinstance(engine, GatedEngine)
    assert "earlier-role-teacher" in runtime.memories
    before = scored(engine)
    update(runtime.policy)
    asyncio.run(runtime.begin_step(2))
    assert scored(engine) == before
    asyncio.run(runtime.begin_step(3))
    assert scored(engine) != before


@pytest.mark.parametrize("source", [EarlierVersion(every=1), JudgeWeights()], ids=lambda it: type(it).__name__)
def test_every_load_of_a_role_is_checked(source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judges = isinstance(source, JudgeWeights)
    run = small().replace(models={"judge": source}, hooks=(TrainedJudge(),) if judges else ())
    runtime = Runtime(run, tmp_path, Deadlines())
    asyncio.run(runtime.begin_step(0))
    update(runtime.policy)
    asyncio.run(runtime.begin_step(1))
    # The engine of the role alone loses a load.
    engine = runtime.models["judge"].engine
    assert isinstance(engine, GatedEngine)
    monkeypatch.setattr(engine.engine, "load_weights", lambda *_: None)
    update(runtime.policy)
    with pytest.raises(NoLearningSignal, match=r"a log-probability of the model .*judge differs from the learner's"):
        asyncio.run(runtime.begin_step(2))
