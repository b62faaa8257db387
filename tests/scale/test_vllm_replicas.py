"""Several vLLM servers on a Ray cluster of this machine, beside `Local`."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from tests.missing import need
from tests.scale.python import ENGINE, PYTHON, changed_policy, policy, prompts

from bough.engine import EngineFault, Local, Replicas, Request, Sampling
from bough.engine.multi_process import MultiProcessEngine
from bough.launch import Ray
from bough.launch.ray_connect import NICENESS

need("ray")
ray: Any = import_module("ray")

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="no vLLM: make test-scale")

PROMPTS = prompts(12)


@pytest.fixture(scope="module")
def shared() -> Iterator[MultiProcessEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NICENESS, "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    engine = Replicas(engine=ENGINE, placement=Ray(cpus=0.5)).build(policy())
    yield engine
    asyncio.run(engine.close())
    ray.shutdown()


def ask(prompt: tuple[int, ...], seed: int) -> Request:
    return Request(prompt_tokens=prompt, sampling=Sampling(max_tokens=12), stop_tokens=(3,), seed=seed)


def test_each_server_has_the_weights_of_every_update(shared: MultiProcessEngine) -> None:
    async def main() -> None:
        for version, learner in enumerate((policy(), changed_policy(), policy())):
            if version:
                shared.load_weights(learner.weights(), version)
            local = Local(slots=16).build(learner)
            requests = [ask(prompt, seed) for seed, prompt in enumerate(PROMPTS)]
            found = await asyncio.gather(*map(shared.generate, requests))
            for request, each in zip(requests, found, strict=True):
                assert each.policy_version == version
                scores = await local.score(request.prompt_tokens, each.tokens)
                assert each.logprobs == pytest.approx(scores, abs=1e-4)
            # The canary's call.
            shared.reset_cache()
            theirs, ours = [await engine.score(PROMPTS[0], PROMPTS[1]) for engine in (shared, local)]
            assert theirs == pytest.approx(ours, abs=1e-4)

    asyncio.run(main())


def test_a_server_that_is_killed_is_replaced_and_counted(shared: MultiProcessEngine) -> None:
    learner = changed_policy()
    shared.load_weights(learner.weights(), 7)

    async def main() -> None:
        requests = [ask(prompt, seed) for seed, prompt in enumerate(PROMPTS)]
        # Both have loaded the weights when they answer.
        await asyncio.gather(*map(shared.generate, requests))
        children = subprocess.run(["pgrep", "-P", str(shared.pids[0])], capture_output=True, text=True, check=True)
        (server,) = map(int, children.stdout.split())
        os.killpg(server, signal.SIGKILL)
        found = await asyncio.gather(*map(shared.generate, requests), return_exceptions=True)
        faults = [each for each in found if isinstance(each, EngineFault)]
        assert 0 < len(faults) < len(found), "each server gets some"
        assert {type(each).__name__ for each in found} == {"EngineFault", "Completion"}
        again = await asyncio.gather(*map(shared.generate, requests))
        assert {each.policy_version for each in again} == {7}
        assert shared.replaced == 1
        local = Local(slots=16).build(learner)
        for prompt, each in zip(PROMPTS, again, strict=True):
            assert each.logprobs == pytest.approx(await local.score(prompt, each.tokens), abs=1e-4)

    asyncio.run(main())
