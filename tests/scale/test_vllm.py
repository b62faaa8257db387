"""The real vLLM beside `Local`: `make test-scale` installs it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.scale.python import ENGINE, PYTHON, changed_policy, policy, prompts

from bough.engine import EngineFault, FinishReason, Local, Request, Sampling, Vllm
from bough.engine.vllm_engine import VllmEngine

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="no vLLM: make test-scale")

PROMPTS = prompts(40)


@pytest.fixture(scope="module")
def shared() -> Iterator[VllmEngine]:
    engine = ENGINE.build(policy())
    yield engine
    asyncio.run(engine.close())


def ask(prompt: tuple[int, ...], *, seed: int = 0, **sampling: object) -> Request:
    return Request(prompt_tokens=prompt, sampling=Sampling(**sampling), stop_tokens=(3,), seed=seed)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.8)])
def test_log_probabilities_and_entropies_are_those_of_the_sampled_distribution(
    shared: VllmEngine, temperature: float, top_p: float
) -> None:
    local = Local(slots=64).build(policy())

    async def main() -> None:
        sampling = {"max_tokens": 8, "temperature": temperature, "top_p": top_p}
        requests = [ask(prompt, seed=seed, **sampling) for seed, prompt in enumerate(PROMPTS)]
        for request, found in zip(requests, await asyncio.gather(*map(shared.generate, requests)), strict=True):
            assert found.finish in (FinishReason.STOP, FinishReason.LENGTH)
            assert (found.tokens[-1] == 3) == (found.finish is FinishReason.STOP)
            assert found.logprobs is not None
            assert found.entropies is not None
            # One token each, so that both engines have the same prefix.
            for place in (0, len(found.tokens) - 1):
                prefix = (*request.prompt_tokens, *found.tokens[:place])
                one = await local.generate(ask(prefix, **(sampling | {"max_tokens": 1})))
                assert one.entropies is not None
                assert found.entropies[place] == pytest.approx(one.entropies[0], abs=1e-4)
            if top_p == 1:
                scores = await local.score(request.prompt_tokens, found.tokens, temperature)
                assert found.logprobs == pytest.approx(scores, abs=2e-5)

    asyncio.run(main())


def test_greedy_completions_are_those_of_local_and_certain(shared: VllmEngine) -> None:
    local = Local(slots=64).build(policy())

    async def main() -> None:
        for prompt in PROMPTS[:8]:
            request = ask(prompt, max_tokens=12, temperature=0.0)
            theirs, ours = await shared.generate(request), await local.generate(request)
            assert theirs.tokens == ours.tokens
            assert theirs.logprobs == theirs.entropies == (0.0,) * len(ours.tokens)

    asyncio.run(main())


def test_a_completion_depends_on_its_seed_alone(shared: VllmEngine) -> None:
    """Seeded requests with long prompts all at once: cut into chunks they would end vLLM's engine on a CPU."""

    async def main() -> None:
        requests = [ask(prompt, seed=seed, max_tokens=16) for seed, prompt in enumerate(prompts(40, tokens=300))]
        crowd = await asyncio.gather(*map(shared.generate, requests))
        alone = [await shared.generate(request) for request in requests[:4]]
        assert [each.tokens for each in alone] == [each.tokens for each in crowd[:4]]
        other = await shared.generate(replace(requests[0], seed=99))
        assert other.tokens != alone[0].tokens

    asyncio.run(main())


def test_after_each_of_100_updates_the_log_probabilities_are_those_of_the_new_weights(shared: VllmEngine) -> None:
    changing = policy()
    local = Local(slots=4).build(changing)
    generator = torch.Generator().manual_seed(0)

    async def main() -> None:
        seen = set[float]()
        for version in range(1, 101):
            with torch.no_grad():
                for weight in changing.parameters().values():
                    weight.add_(0.02 * torch.randn(weight.shape, generator=generator))
            shared.load_weights(changing.weights(), version)
            local.load_weights(changing.weights(), version)
            # The prompt is in the cache of the old weights.
            theirs, ours = [await engine.score(PROMPTS[0], PROMPTS[1]) for engine in (shared, local)]
            assert theirs == pytest.approx(ours, abs=1e-4)
            seen.add(theirs[0])
            sampled = await shared.generate(ask(PROMPTS[0], seed=version, max_tokens=4))
            assert sampled.policy_version == shared.policy_version == version
            assert sampled.logprobs == pytest.approx(await local.score(PROMPTS[0], sampled.tokens), abs=1e-4)
        assert len(seen) == 100

    asyncio.run(main())
    shared.load_weights(policy().weights(), 0)


def test_weights_of_another_model_are_refused_and_the_old_ones_stay(shared: VllmEngine) -> None:
    before = asyncio.run(shared.score(PROMPTS[0], PROMPTS[1]))
    weights = dict(policy().weights())
    name, weight = next(iter(weights.items()))
    for wrong in (
        {each: tensor for each, tensor in weights.items() if each != name},
        weights | {name: weight[1:]},
        weights | {"model.other": weight},
    ):
        with pytest.raises(ValueError, match="load_weights: got '(model.other|" + name.replace(".", r"\.") + ")'"):
            shared.load_weights(wrong, 7)
    assert shared.policy_version == 0
    assert asyncio.run(shared.score(PROMPTS[0], PROMPTS[1])) == pytest.approx(before, abs=1e-6)


def test_bad_requests_raise_what_is_wrong(shared: VllmEngine) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=r"got a prompt of 600 tokens; need at least 1 and fewer than .* 512"):
            await shared.generate(ask((5,) * 600))
        with pytest.raises(ValueError, match="got a prompt of 0 tokens"):
            await shared.generate(ask(()))
        with pytest.raises(ValueError, match=r"top_probs: got 2 with engine=Vllm"):
            await shared.generate(ask((5,), top_probs=2))
        with pytest.raises(ValueError, match=r"got temperature 2.0; need 1"):
            await shared.score((5,), (6,), 2.0)
        with pytest.raises(EngineFault, match=r"vLLM server answered status 4.*[vV]ocab"):
            await shared.generate(ask((10**6,)))
        # The engine goes on.
        assert (await shared.generate(ask((5,), max_tokens=2))).tokens

    asyncio.run(main())


def test_completions_in_flight_continue_under_new_weights(shared: VllmEngine) -> None:
    """Log-probabilities of the tokens before the update are those of the old weights, after it those of the new."""
    old, new = Local(slots=8).build(policy()), Local(slots=8).build(changed := changed_policy())
    shared.load_weights(policy().weights(), 6)

    async def main() -> None:
        requests = [replace(ask(prompt, max_tokens=400), stop_tokens=()) for prompt in PROMPTS[:6]]
        tasks = [asyncio.create_task(shared.generate(request)) for request in requests]
        # Its end shows that all completions have begun.
        await shared.generate(replace(requests[0], sampling=Sampling(max_tokens=40)))
        shared.load_weights(changed.weights(), 7)
        shared.reset_cache()
        fresh, found = await shared.generate(requests[0]), await asyncio.gather(*tasks)
        assert fresh.policy_version == 7
        assert fresh.logprobs == pytest.approx(await new.score(PROMPTS[0], fresh.tokens), abs=1e-4)
        for prompt, each in zip(PROMPTS, found, strict=False):
            assert (each.policy_version, len(each.tokens)) == (6, 400)
            scores = [torch.tensor(await local.score(prompt, each.tokens)) for local in (old, new)]
            under_old, under_new = [(torch.tensor(each.logprobs) - score).abs() < 1e-4 for score in scores]
            switch = int(under_old.long().cumprod(0).sum())
            assert 10 < switch < 390
            assert under_new[switch:].all()
            assert not under_new[:switch].all()

    asyncio.run(main())
    shared.load_weights(policy().weights(), 0)


def test_requests_as_the_server_closes_idle_connections(shared: VllmEngine) -> None:
    """vLLM's server closes a connection that has been idle for 5 s."""

    async def main() -> None:
        for pause_s in (0.0, 4.98, 5.0, 5.02):
            await asyncio.sleep(pause_s)
            found = await asyncio.gather(*(shared.generate(ask(prompt, max_tokens=1)) for prompt in PROMPTS))
            assert len(found) == len(PROMPTS)

    asyncio.run(main())


def test_cancelled_requests_are_not_in_flight(shared: VllmEngine) -> None:
    async def main() -> None:
        tasks = [asyncio.create_task(shared.generate(ask(prompt, max_tokens=400))) for prompt in PROMPTS[:6]]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        busy_s = shared.busy_s
        await asyncio.sleep(0.1)
        assert shared.busy_s == busy_s

    asyncio.run(main())


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_dies_or_hangs_is_replaced_with_the_newest_weights(kind: signal.Signals) -> None:
    engine = replace(ENGINE, deadline_s=20.0, updates_in_flight=False).build(policy())
    engine.load_weights(changed_policy().weights(), 5)

    async def main() -> None:
        wanted = await engine.score(PROMPTS[0], PROMPTS[1])
        tasks = [asyncio.create_task(engine.generate(ask(prompt, max_tokens=400))) for prompt in PROMPTS[:6]]
        await asyncio.sleep(0.3)
        with pytest.raises(RuntimeError, match="6 requests in flight"):
            engine.load_weights(policy().weights(), 6)
        first = engine.pid
        assert first is not None
        os.killpg(first, kind)
        failed = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, EngineFault) for each in failed), failed
        assert await engine.score(PROMPTS[0], PROMPTS[1]) == pytest.approx(wanted, abs=1e-6)
        assert engine.pid != first
        assert engine.replaced == 1
        assert (await engine.generate(ask(PROMPTS[0], max_tokens=4))).policy_version == 5
        await engine.close()
        await engine.close()
        with pytest.raises(EngineFault, match="closed"):
            await engine.generate(ask(PROMPTS[0]))

    asyncio.run(main())


def test_the_error_of_a_server_that_does_not_start_has_its_log() -> None:
    with pytest.raises(ValueError, match=r"(?s)ended with status 2.*no-such-argument"):
        replace(ENGINE, arguments={"no_such_argument": 3}).build(policy())
    with pytest.raises(ValueError, match=r"(?s)ended with status 1.*No module named 'vllm'"):
        replace(ENGINE, python=sys.executable).build(policy())
    with pytest.raises(ValueError, match=r"Vllm.python: got 'no/python'"):
        replace(ENGINE, python="no/python").build(policy())


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(
        "import time\nfrom tests.scale.python import ENGINE, policy\n"
        "engine = ENGINE.build(policy())\nprint(engine.pid, flush=True)\ntime.sleep(600)\n"
    )
    starter = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=_with_tests())
    assert starter.stdout is not None
    group = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    end = time.monotonic() + 20
    while time.monotonic() < end and _alive(group):
        time.sleep(0.1)
    assert not _alive(group)


def _with_tests() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_settings_are_checked() -> None:
    for wrong in ({"slots": 0}, {"context_tokens": 1}, {"start_s": 0.0}, {"cache_gib": 0}, {"restarts": -1}):
        with pytest.raises(ValueError, match=f"Vllm.{next(iter(wrong))}: got "):
            Vllm(**wrong)
    with pytest.raises(ValueError, match="arguments: got model, which Bough sets"):
        Vllm(arguments={"model": "other"})
