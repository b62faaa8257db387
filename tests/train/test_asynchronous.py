"""Several batches that grow while the policy learns: the bound on staleness, and no tree lost or trained twice."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.train.test_pipeline import EPOCHS, STEPS, brief, rows, versions

from bough.engine import Request, Sampling
from bough.engine.gated import GatedEngine
from bough.learner import Diverged, Learner
from bough.objective import Tis
from bough.rollout import RolloutRunner
from bough.store import RunDirectory, read_trees
from bough.train import resume, start
from bough.train.growing import GrowingBatch
from bough.tree import Credited, Source


def trained(directory: RunDirectory) -> list[list[str]]:
    """The tasks of the trees of each step."""
    found = [read_trees(directory.trees_of(EPOCHS + step), Credited) for step in range(1, STEPS + 1)]
    return [[each.tree.task.id for each in trees] for trees in found]


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Make every completion slow, so that updates end while trees grow."""
    generate = GatedEngine.generate

    async def generates(self: GatedEngine, request: Any) -> Any:
        await asyncio.sleep(seconds)
        return await generate(self, request)

    monkeypatch.setattr(GatedEngine, "generate", generates)


@pytest.mark.parametrize("staleness", [2, 4])
def test_no_token_is_older_than_the_bound_and_paths_go_on_with_new_weights(
    staleness: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(monkeypatch, 0.02)
    now = start(brief(name="now"), tmp_path, terminal=False)
    ahead = start(brief(name="ahead", staleness=staleness, objective=Tis()), tmp_path, terminal=False)
    # Two optimizer steps a batch.
    for step, found in enumerate(versions(ahead)):
        assert 2 * max(0, step - staleness) <= min(found) <= max(found) <= 2 * step
    trees = [tree for step in range(1, STEPS + 1) for tree in read_trees(ahead.trees_of(EPOCHS + step), Credited)]
    sampled = [{*each.tree.policy_version[each.tree.source == Source.SAMPLED].tolist()} for each in trees]
    assert any(len(each) > 1 for each in sampled), "a tree of two versions"
    assert trained(ahead) == trained(now), "the same tasks in the same order"
    logged = [float(str(row["policy/staleness_max"])) for row in rows(ahead)]
    assert logged == [step - min(found) / 2 for step, found in enumerate(versions(ahead))], (
        "steps between the oldest token and its update"
    )
    assert 0 < max(logged) <= staleness


def test_log_probabilities_are_those_of_the_weights_that_a_token_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With unchanging weights a mean gap above rounding would show a completion of mixed versions."""
    slow(monkeypatch, 0.02)
    directory = start(brief(staleness=3, objective=Tis()), tmp_path, terminal=False)
    gaps = [float(str(row["policy/gap"])) for row in rows(directory) if "policy/gap" in row]
    assert gaps
    assert max(gaps) < 1e-4


def test_at_most_a_batch_of_trees_grows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing, most, steps = 0, 0, set[int]()
    one = RolloutRunner._one  # pyright: ignore[reportPrivateUsage]

    async def counted(self: RolloutRunner, *given: Any) -> Any:
        nonlocal growing, most
        growing += 1
        most = max(most, growing)
        try:
            return await one(self, *given)
        finally:
            growing -= 1

    run = RolloutRunner.run

    async def runs(self: RolloutRunner, *given: Any, **named: Any) -> Any:
        batch = named.get("store")
        if isinstance(batch, GrowingBatch):
            steps.add(batch.step)
        return await run(self, *given, **named)

    monkeypatch.setattr(RolloutRunner, "_one", counted)
    monkeypatch.setattr(RolloutRunner, "run", runs)
    ahead = brief(staleness=4, objective=Tis())
    start(ahead, tmp_path, terminal=False)
    assert most <= ahead.world.schedule.batch_tasks + ahead.world.evaluation.tasks.count, "an evaluation has its own"
    assert steps == {EPOCHS + step for step in range(1, STEPS + 1)}, "none beyond the last step"


def test_a_run_that_stops_keeps_finished_trees_and_grows_the_others_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Learner.learn
    stored, served = dict[tuple[int, int], Any](), dict[tuple[int, int], Any]()
    put, get = GrowingBatch.put, GrowingBatch.get

    def breaks(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        if self.settings.minibatches == 2:
            time.sleep(0.3)
            if self.updates == 4:
                raise Diverged("update 4: got a loss of nan")
        return learn(self, *given, **named)

    def puts(self: GrowingBatch, place: int, tree: Any) -> None:
        stored[self.step, place] = tree
        put(self, place, tree)

    def gets(self: GrowingBatch, place: int, task: Any) -> Any:
        if tree := get(self, place, task):
            served[self.step, place] = tree
        return tree

    monkeypatch.setattr(GrowingBatch, "put", puts)
    monkeypatch.setattr(GrowingBatch, "get", gets)
    slow(monkeypatch, 0.04)
    run = brief(staleness=3, objective=Tis())
    with monkeypatch.context() as broken:
        broken.setattr(Learner, "learn", breaks)
        with pytest.raises(Diverged):
            start(run, tmp_path, terminal=False)
    ahead = {place: tree for place, tree in stored.items() if place[0] > EPOCHS + 3}
    assert ahead, "trees of later steps were finished"
    stored.clear()
    directory = resume(tmp_path / "small", terminal=False)
    assert not stored.keys() & ahead.keys(), "no finished tree is grown again"
    found = {step: read_trees(directory.trees_of(EPOCHS + step), Credited) for step in range(4, STEPS + 1)}
    for (step, place), tree in ahead.items():
        assert found[step - EPOCHS][place].tree.token.tobytes() == tree.token.tobytes()
    assert [len(trees) for trees in found.values()] == [run.world.schedule.batch_tasks] * (STEPS - 3)


def test_an_engine_loads_weights_between_requests() -> None:
    class Engine:
        policy_version, context_tokens, flying = 0, 8, 0

        async def generate(self, request: Request) -> Any:
            assert request.prompt_tokens
            self.flying += 1
            before = self.policy_version
            await asyncio.sleep(0.01)
            assert self.policy_version == before
            self.flying -= 1
            return before

        def load_weights(self, weights: Any, policy_version: int) -> None:
            assert self.flying == 0 == len(weights)
            self.policy_version = policy_version

    async def many() -> list[Any]:
        engine: Any = Engine()
        gated = GatedEngine(engine)
        request = Request(prompt_tokens=(1,), sampling=Sampling(), stop_tokens=(), seed=0)

        async def ask(number: int) -> Any:
            await asyncio.sleep(number * 0.002)
            return await gated.generate(request)

        async def load(version: int) -> None:
            await asyncio.sleep(version * 0.011)
            async with gated.loading():
                await asyncio.sleep(0.005)
                gated.load_weights({}, version)

        asking = [asyncio.create_task(ask(number)) for number in range(20)]
        cancelled = asyncio.create_task(load(1))
        await asyncio.gather(*(load(version) for version in (1, 2, 3)))
        cancelled.cancel()
        return await asyncio.gather(*asking)

    assert {0, 1, 2, 3} >= {*asyncio.run(many())} > {0}


def test_completions_of_an_engine_with_updates_in_flight_do_not_wait_but_scores_do() -> None:
    class Engine:
        policy_version, context_tokens, updates_in_flight = 0, 8, True
        completing = scoring = 0

        async def generate(self, request: Request) -> int:
            assert request.prompt_tokens
            before = self.policy_version
            self.completing += 1
            while self.policy_version == before:
                await asyncio.sleep(0.001)
            self.completing -= 1
            return before

        async def score(self, *given: Any) -> tuple[float, ...]:
            assert given
            self.scoring += 1
            await asyncio.sleep(0.02)
            self.scoring -= 1
            return ()

        def load_weights(self, weights: Any, policy_version: int) -> None:
            assert (self.completing, self.scoring) == (1, 0)
            self.policy_version = policy_version + len(weights)

    async def main() -> None:
        engine: Any = Engine()
        gated = GatedEngine(engine)
        request = Request(prompt_tokens=(1,), sampling=Sampling(), stop_tokens=(), seed=0)
        completing, scoring = asyncio.create_task(gated.generate(request)), asyncio.create_task(gated.score((1,), (2,)))
        await asyncio.sleep(0)
        async with gated.loading():
            gated.load_weights({}, 1)
        assert await completing == 0
        await scoring

    asyncio.run(main())
