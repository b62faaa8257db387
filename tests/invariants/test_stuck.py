"""Invariant 8: every await has an owner and a deadline; a stuck run prints what waits for what and exits non-zero."""

import asyncio
from pathlib import Path

import pytest
from tests.forks import command
from tests.talk import ONE_STEP, Bough

from bough.rollout import DeadlineExceeded, Deadlines

STUCK = 75

RECIPES = '''
import time
from asyncio import sleep
from dataclasses import dataclass, replace

from bough.engine import Local
from bough.env import Branching
from bough.worlds.frozenlake import FrozenLake
from tests.small import run as small


class Silent:
    """An engine that scores, and never writes."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    async def generate(self, request):
        await sleep(1000)


class Deaf(Silent):
    async def score(self, prompt_tokens, continuation_tokens, temperature=1.0):
        await sleep(1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    kind: str = "Silent"

    def build(self, policy):
        return globals()[self.kind](Local(slots=8).build(policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(FrozenLake):
    """An environment that blocks the whole process, at the start or later."""

    block: str = "step"

    def start(self, task):
        if self.block == "start":
            time.sleep(1000)
        return FrozenLake.start(self, task)

    def step(self, state, action):
        if self.block == "step" and "oracle" not in action:
            time.sleep(1000)
        return FrozenLake.step(self, state, action)


def made(**changes):
    run = small()
    limits = replace(run.world.limits, env_deadline_s=3, engine_deadline_s=3)
    guards = replace(run.health, stuck_s=0.2)
    return run.replace(limits=limits, health=guards, **changes)


def silent():
    return made(engine=Quiet())


def deaf():
    return made(engine=Quiet(kind="Deaf"))


def blocked():
    return made(env=Slow(size=3, max_steps=6))
'''


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    file = tmp_path / "stuck.py"
    file.write_text(RECIPES)
    return file


def test_an_engine_that_never_answers(bough: Bough, recipes: Path) -> None:
    error = bough("train", "stuck.py:silent", *ONE_STEP, folder=recipes.parent).error(STUCK)
    assert "error: task frozenlake-" in error
    assert "branch 0 waited 3 s for completion of" in error
    assert "\nwaiting:\n" in error
    assert error.count("  <-  completion of ") >= 2, "everybody who waits is named"


def test_a_canary_that_never_comes(bough: Bough, recipes: Path) -> None:
    error = bough("train", "stuck.py:deaf", *ONE_STEP, folder=recipes.parent).error(STUCK)
    assert "weight sync waited 3 s for canary scores" in error


@pytest.mark.parametrize("block", ["start", "step"])
def test_an_environment_that_blocks_the_process(recipes: Path, block: str) -> None:
    said = command("train", "stuck.py:blocked", *ONE_STEP, f"env.block={block}", folder=recipes.parent).wait()
    assert said.status == STUCK, said
    assert "past its deadline of 3 s for environment" in said.err
    assert "and the event loop does not answer\nwaiting:\n" in said.err
    assert f"in {block}\n" in said.err, "the stack says where"


def test_a_wait_is_named_and_ends() -> None:
    async def main() -> None:
        deadlines = Deadlines()
        long = asyncio.create_task(deadlines.until(asyncio.sleep(60), owner="A", thing="a letter", deadline_s=50.0))
        await asyncio.sleep(0)
        with pytest.raises(DeadlineExceeded) as stuck:
            await deadlines.until(asyncio.sleep(60), owner="B", thing="an answer", deadline_s=0.05)
        lines = str(stuck.value).splitlines()
        assert lines[:2] == ["B waited 0.05 s for an answer", "waiting:"]
        assert [line.split(" s of ")[1] for line in lines[2:]] == ["50 s  A  <-  a letter", "0.05 s  B  <-  an answer"]
        assert deadlines.overdue() == []
        long.cancel()
        await asyncio.gather(long, return_exceptions=True)
        assert deadlines.table() == "waiting:\n  nothing"

    asyncio.run(main())
