"""Several engine processes: real ones, of a model so small that what is tested is the traffic."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.toys import Toy, ask, engine, run
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from bough.engine import Completion, EngineFault, Local, Replicas
from bough.engine.engine import CompilesGrammars, Engine
from bough.engine.generation import LocalEngine
from bough.engine.multi_process import MultiProcessEngine
from bough.engine.shared_processes import SharedProcesses
from bough.engine.worker import EngineWorker
from bough.grammar import Grammar

PROMPTS = [(tree, *range(20), tree, *[tree] * 20) for tree in range(1, 7)]


def fleet(model: Any = None, kind: str = "shared", **config: Any) -> MultiProcessEngine:
    settings = Replicas(engine=Local(**config)) if kind == "replicas" else Local(**{"processes": 2, **config})
    built = settings.build(model or Toy())
    assert isinstance(built, MultiProcessEngine)
    return built


KINDS = ["shared", "replicas"]
"""Processes over one copy of the weights, and processes that each have their own."""


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest) -> Iterator[tuple[Toy, MultiProcessEngine]]:
    """One for all tests that leave it as it was, as processes take seconds to start."""
    model = Toy()
    # For grammars: the end, and 28 characters.
    texts = {text: token for token, text in enumerate(("</s>", *"abcdefghijklmnopqrstuvwxyzĠ{"))}
    letters = Tokenizer(BPE(vocab=texts, merges=[]))
    letters.pre_tokenizer, letters.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    letters.add_special_tokens(["</s>"])
    model.tokenizer = letters.to_str()
    built = fleet(model, request.param)
    yield model, built
    run(built.close())


def together(built: Any, count: int = 24) -> list[Completion]:
    async def main() -> list[Completion]:
        requests = (ask(PROMPTS[seed % len(PROMPTS)], seed=seed) for seed in range(count))
        return await asyncio.gather(*(built.generate(request) for request in requests))

    return run(main())


def same(one: list[Completion], other: list[Completion]) -> None:
    assert [each.tokens for each in one] == [each.tokens for each in other]
    for left, right in zip(one, other, strict=True):
        assert left.logprobs == pytest.approx(right.logprobs, abs=1e-10)


def test_completions_scores_and_counts_are_those_of_one_process(shared: tuple[Toy, MultiProcessEngine]) -> None:
    _, built = shared
    alone = engine()
    built.reset_cache()
    before = built.stats
    # The loop of the second round is another one.
    for _ in range(2):
        same(together(built), together(alone))
    done, expected = built.stats, alone.stats
    assert done.prompt_tokens - before.prompt_tokens == expected.prompt_tokens
    # Branches of a tree come to one process.
    assert done.cached_prompt_tokens - before.cached_prompt_tokens == expected.cached_prompt_tokens
    assert done.generated_tokens - before.generated_tokens == expected.generated_tokens
    assert built.busy_s > 0

    async def score(asked: MultiProcessEngine | LocalEngine) -> tuple[float, ...]:
        both = await asked.score_each(PROMPTS[0], ((3, 4, 5), (6,)), 0.5)
        assert both[1] == pytest.approx(await asked.score(PROMPTS[0], (6,), 0.5))
        return both[0]

    assert run(score(built)) == pytest.approx(run(score(alone)), abs=1e-10)
    assert built.context_tokens == alone.context_tokens


def test_a_grammar_of_a_client_is_compiled_within_bounds_and_followed(shared: tuple[Toy, MultiProcessEngine]) -> None:
    model, built = shared
    assert isinstance(built, CompilesGrammars)
    parts = [{"anyOf": [{"properties": {f"k{one}_{two}": {}}} for one in range(4)]} for two in range(5)]
    large = Grammar.of_schema({"type": "object", "allOf": parts})
    grammar = Grammar.of_texts(["go left", "go right"])

    async def main(compiles: CompilesGrammars, generates: Engine) -> list[Completion]:
        with pytest.raises(ValueError, match="too big"):
            await compiles.compile_grammar(large, (0,))
        await compiles.compile_grammar(grammar, (0,))
        asked = [replace(ask(PROMPTS[0], seed=seed, max_tokens=12, stop=(0,)), grammar=grammar) for seed in range(8)]
        return await asyncio.gather(*map(generates.generate, asked))

    found, alone = run(main(built, built)), engine(model)
    same(found, run(main(alone, alone)))
    assert {sum(token != 28 for token in each.tokens) for each in found} <= {8, 9, 10}
    assert all(each.allowed is not None for each in found)


def test_one_process_is_beside_this_one() -> None:
    built = fleet(processes=1)
    assert pid_of(built, 0) != os.getpid()
    assert len(built.pids) == 1
    same(together(built, 8), together(engine(), 8))
    run(built.close())


def test_new_weights_are_everywhere_at_once(shared: tuple[Toy, MultiProcessEngine]) -> None:
    model, built = shared
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    together(built)
    built.load_weights(Toy(seed=1).state_dict(), 7)
    completions = together(built)
    assert {each.policy_version for each in completions} == {built.policy_version} == {7}
    same(completions, together(engine(Toy(seed=1))))
    alone = pytest.approx(run(engine(Toy(seed=1)).score(PROMPTS[0], (3, 4))), abs=1e-10)
    assert run(built.score_each_process(PROMPTS[0], (3, 4))) == {0: alone, 1: alone}
    with pytest.raises(ValueError, match="need"):
        built.load_weights({}, 8)
    built.load_weights(first, 0)
    same(together(built), together(engine()))


def test_what_is_wrong_with_a_request_is_told(shared: tuple[Toy, MultiProcessEngine]) -> None:
    _, built = shared
    with pytest.raises(ValueError, match="got a prompt of 600 tokens"):
        run(built.generate(ask([1] * 600)))
    with pytest.raises(ValueError, match="vocabulary"):
        run(built.score((1,), (99,)))


def test_nothing_is_taken_over_while_requests_are_in_flight_but_cancelled_ones_are_none(
    shared: tuple[Toy, MultiProcessEngine],
) -> None:
    model, built = shared

    async def main() -> None:
        tasks = [asyncio.create_task(built.generate(ask(prompt, max_tokens=400))) for prompt in PROMPTS]
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="6 requests in flight"):
            built.load_weights(model.state_dict(), 0)
        # Half of them before they were sent, half after.
        for task in tasks[::2]:
            task.cancel()
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="3 requests in flight"):
            built.reset_cache()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        built.load_weights(model.state_dict(), 0)
        # They end early in their processes too: many more would take minutes.
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(built.generate(ask(PROMPTS[0], max_tokens=400)), 0.01)

    run(main())
    same(together(built), together(engine()))


def test_a_process_that_is_killed_fails_what_it_had_and_is_replaced(shared: tuple[Toy, MultiProcessEngine]) -> None:
    model, built = shared
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    built.load_weights(Toy(seed=1).state_dict(), 3)
    together(built)
    before = built.stats

    async def main() -> list[Completion | BaseException]:
        tasks = [asyncio.create_task(built.generate(ask(prompt, max_tokens=400))) for prompt in PROMPTS]
        await asyncio.sleep(0.05)
        os.kill(pid_of(built, 0), signal.SIGKILL)
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = run(main())
    faults = [answer for answer in answers if isinstance(answer, EngineFault)]
    assert 0 < len(faults) < len(PROMPTS)
    assert "3 requests in flight" in str(faults[0])
    assert f"exit status {-signal.SIGKILL}" in str(faults[0])
    assert "for memory" in str(faults[0])
    assert sum(isinstance(answer, Completion) for answer in answers) == len(PROMPTS) - len(faults)
    # The fresh one has the newest weights.
    completions = together(built)
    assert {each.policy_version for each in completions} == {3}
    same(completions, together(engine(Toy(seed=1))))
    assert built.stats.generated_tokens > before.generated_tokens

    # And when nobody listens, whoever asks next notices.
    os.kill(pid_of(built, 1), signal.SIGKILL)
    assert built._workers[1].connection.poll(60), "the system has closed what was its"  # pyright: ignore
    built.reset_cache()
    same(together(built), completions)
    built.load_weights(first, 0)


def test_a_process_that_hangs_fails_its_requests_and_is_replaced() -> None:
    built = fleet(deadline_s=3)
    together(built)
    os.kill(pid_of(built, 0), signal.SIGSTOP)

    async def main() -> list[Completion | BaseException]:
        tasks = [asyncio.create_task(built.generate(ask(prompt))) for prompt in PROMPTS]
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = run(main())
    faults = [answer for answer in answers if isinstance(answer, EngineFault)]
    assert 0 < len(faults) < len(PROMPTS)
    assert "it did not answer for 3 s" in str(faults[0])
    assert "for memory" not in str(faults[0]), "it was ended by the engine"
    assert built.replaced == 1
    same(together(built), together(engine()))
    run(built.close())


def test_a_process_that_takes_no_weights_is_replaced() -> None:
    """A stopped process lets the channel fill up, with weights of more than its buffers hold."""
    built = Replicas(deadline_s=1).build(Toy(vocab_tokens=4000))
    assert isinstance(built, MultiProcessEngine)
    os.kill(pid_of(built, 0), signal.SIGSTOP)
    for version in (1, 2):
        built.load_weights(Toy(vocab_tokens=4000, seed=version).weights(), version)
    assert built.replaced == 1
    assert {each.policy_version for each in together(built)} == {2}
    same(together(built), together(engine(Toy(vocab_tokens=4000, seed=2))))
    run(built.close())


def test_a_replacement_that_is_killed_as_it_starts_is_replaced_too() -> None:
    built = fleet(kind="replicas")
    for _ in range(2):
        os.kill(pid_of(built, 0), signal.SIGKILL)
        time.sleep(0.2)
        built.reset_cache()
    assert built.replaced == 2
    assert len(together(built)) == 24
    # It was ready in between, so that three further starts are allowed.
    for _ in range(2):
        os.kill(pid_of(built, 0), signal.SIGKILL)
        time.sleep(0.2)
        built.reset_cache()
    same(together(built), together(engine()))
    run(built.close())


async def lose(built: MultiProcessEngine) -> None:
    """Kill the first process; returns when its replacement starts."""
    await built.generate(ask(PROMPTS[0]))
    os.kill(pid_of(built, 0), signal.SIGKILL)
    while 0 not in built._starting:
        await asyncio.sleep(0.01)


def slow_starts(built: MultiProcessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = built._start

    def slow(index: int) -> EngineWorker:
        time.sleep(2)
        return real(index)

    monkeypatch.setattr(built, "_start", slow)


def test_a_replacement_starts_beside_the_event_loop(
    shared: tuple[Toy, MultiProcessEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests and weights that come meanwhile wait for it."""
    (model, built), ticks = shared, 0
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    replaced = built.replaced
    slow_starts(built, monkeypatch)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 0 in built._starting

    async def main() -> list[Completion]:
        ticking = asyncio.create_task(tick())
        await lose(built)
        built.load_weights(Toy(seed=1).state_dict(), 5)
        assert list(await built.score_each_process(PROMPTS[0], (3, 4))) == [1], "the one that serves"
        found = await asyncio.gather(*(built.generate(ask(prompt)) for prompt in PROMPTS))
        assert not built._starting
        ticking.cancel()
        return found

    found = run(main())
    assert ticks >= 5, "the two seconds of a start do not stop the event loop"
    assert {each.policy_version for each in found} == {5}
    assert built.replaced == replaced + 1
    built.load_weights(first, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_engine_fails_its_requests_and_ends_a_process_that_starts_later(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = fleet(kind=kind)
    slow_starts(built, monkeypatch)

    async def close() -> list[Completion | BaseException]:
        await lose(built)
        starting = built._starting[0]
        tasks = [asyncio.create_task(built.generate(ask(prompt, max_tokens=400))) for prompt in PROMPTS]
        await asyncio.sleep(0.05)
        await built.close()
        await built.close()
        late = await asyncio.wrap_future(starting.worker)
        await asyncio.sleep(0.2)
        assert late.connection.closed, "a process that starts after the end is ended"
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(answer, EngineFault) for answer in run(close()))
    with pytest.raises(EngineFault, match="closed"):
        run(built.generate(ask([1])))


def test_a_process_that_cannot_be_replaced_fails_its_requests_with_the_cause() -> None:
    lost = fleet()
    assert isinstance(lost._processes, SharedProcesses)
    lost._processes._model = Unsendable()
    os.kill(pid_of(lost, 0), signal.SIGKILL)
    time.sleep(0.2)

    async def asked() -> list[Completion | BaseException]:
        requests = (lost.generate(ask(prompt)) for prompt in PROMPTS)
        return await asyncio.gather(*requests, return_exceptions=True)

    for _ in range(2):
        told = run(asked())
        assert {type(each) for each in told} == {Completion, EngineFault}
    assert any("cannot be sent to another process" in str(each) for each in told)
    run(lost.close())


@pytest.mark.parametrize("kind", KINDS)
def test_processes_end_with_their_engine(kind: str) -> None:
    built = fleet(kind=kind)
    pids = [pid_of(built, place) for place in range(len(built.pids))]
    del built
    gc.collect()
    for pid in pids:
        try:
            assert os.waitpid(pid, 0)[0] == pid
        except ChildProcessError:  # a fork of a fork server, which has waited for it
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.01)


def test_alone_means_bit_equal_to_one_process() -> None:
    built = fleet(Toy(dtype=torch.float32), deterministic=True)
    assert together(built, 8) == together(engine(Toy(dtype=torch.float32), deterministic=True), 8)
    run(built.close())


class Unsendable(Toy):
    def __init__(self) -> None:
        super().__init__()
        self.hook = lambda: None


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be sent to another process"):
        fleet(Unsendable())
    elsewhere = Toy()
    elsewhere.device = torch.device("meta")
    with pytest.raises(ValueError, match="need a model on the CPU"):
        fleet(elsewhere)
    with pytest.raises(ValueError, match=r"Local\.processes: got 3; need at most slots=2"):
        Local(processes=3, slots=2)
    with pytest.raises(ValueError, match="for each of 2 processes"):
        Local(processes=2, cache_tokens=100)
    with pytest.raises(ValueError, match=r"Replicas\.count: got 0; need at least 1"):
        Replicas(count=0)


def pid_of(built: MultiProcessEngine, place: int) -> int:
    pid = built.pids[place]
    assert pid
    return pid
