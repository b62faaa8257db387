"""Adapters that the real vLLM applies, beside `Local` with merged weights."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.scale.python import ENGINE, PYTHON, adapted_policy, move, policy, prompts

from bough.engine import EngineFault, Local, Request, Sampling
from bough.engine.gated import GatedEngine
from bough.engine.vllm_engine import VllmEngine

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="no vLLM: make test-scale")

PROMPTS = prompts(8, tokens=150)


@pytest.fixture(scope="module")
def shared() -> Iterator[VllmEngine]:
    engine = replace(ENGINE, adapters=True).build(adapted_policy())
    yield engine
    asyncio.run(engine.close())


def ask(prompt: tuple[int, ...], tokens: int, seed: int = 0) -> Request:
    return Request(prompt_tokens=prompt, sampling=Sampling(max_tokens=tokens), stop_tokens=(), seed=seed)


def test_after_each_update_the_log_probabilities_are_those_of_the_new_adapters(shared: VllmEngine) -> None:
    changing = adapted_policy()
    local, gated = Local(slots=8).build(changing), GatedEngine(shared)

    async def main() -> None:
        seen = set[float]()
        for version in range(1, 21):
            # The prompts are in the cache of the old adapters.
            theirs, ours = [await engine.score(PROMPTS[0], PROMPTS[1]) for engine in (shared, local)]
            assert theirs == pytest.approx(ours, abs=1e-4)
            seen.add(theirs[0])
            requests = [ask(prompt, 8, seed) for seed, prompt in enumerate(PROMPTS)]
            for request, each in zip(requests, await asyncio.gather(*map(shared.generate, requests)), strict=True):
                assert each.policy_version == version - 1
                assert each.logprobs == pytest.approx(await local.score(request.prompt_tokens, each.tokens), abs=1e-4)
            move(changing, by=0.05, seed=version)
            gated.load_policy(changing, version)
            local.load_weights(changing.weights(), version)
        assert len(seen) == 20

    asyncio.run(main())


def test_completions_in_flight_keep_their_adapters(shared: VllmEngine) -> None:
    versions = [adapted_policy() for _ in range(4)]
    for number, each in enumerate(versions):
        move(each, seed=100 + number)
    gated = GatedEngine(shared)

    async def main() -> None:
        tasks = list[asyncio.Task[object]]()
        for number, each in enumerate(versions):
            gated.load_policy(each, 100 + number)
            tasks += [asyncio.create_task(shared.generate(ask(prompt, 200, number))) for prompt in PROMPTS[:3]]
            # Its end shows that the others have begun.
            await shared.generate(ask(PROMPTS[3], 5))
        for place, found in enumerate(await asyncio.gather(*tasks)):
            local = Local(slots=4).build(versions[place // 3])
            assert found.policy_version == 100 + place // 3
            assert found.logprobs == pytest.approx(await local.score(PROMPTS[place % 3], found.tokens), abs=1e-4)
        gated.load_policy(versions[0], 200)

    asyncio.run(main())
    server: Any = shared._server  # pyright: ignore[reportPrivateUsage]
    assert len(list(server.socket.parent.glob("adapters-*"))) == 1, "unused ones are removed"


def test_a_replacement_has_the_newest_adapters() -> None:
    engine, changed = replace(ENGINE, adapters=True).build(adapted_policy()), adapted_policy()
    move(changed)
    GatedEngine(engine).load_policy(changed, 5)

    async def main() -> None:
        wanted = await engine.score(PROMPTS[0], PROMPTS[1])
        task = asyncio.create_task(engine.generate(ask(PROMPTS[0], 300)))
        await asyncio.sleep(0.3)
        assert engine.pid is not None
        os.killpg(engine.pid, signal.SIGKILL)
        with pytest.raises(EngineFault):
            await task
        assert await engine.score(PROMPTS[0], PROMPTS[1]) == pytest.approx(wanted, abs=1e-6)
        assert (await engine.generate(ask(PROMPTS[0], 4))).policy_version == 5
        await engine.close()

    asyncio.run(main())


def test_a_policy_without_adapters_is_refused() -> None:
    with pytest.raises(ValueError, match="adapters: got True for a policy without adapters"):
        replace(ENGINE, adapters=True).build(policy())
