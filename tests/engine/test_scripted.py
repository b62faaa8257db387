import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Any

import pytest
from toys import ask, run

from bough.engine import Completion, Engine, EngineFault, FinishReason, InjectedFault, Request, Scripted

TABLE: dict[tuple[int, ...], Sequence[Any]] = {(5, 6): [(1, 2), (3,)], (7,): [(0, 9)], (8,): [InjectedFault.ABORTED]}


def _echo(request: Request) -> tuple[int, ...]:
    return (request.prompt_tokens[-1], request.seed)


def test_it_is_an_engine() -> None:
    engine: Engine = Scripted(script=_echo)
    assert (engine.policy_version, engine.context_tokens) == (0, 4096)


def test_a_function_of_the_request() -> None:
    engine = Scripted(script=_echo)
    completion = run(engine.generate(ask((4, 5), seed=9, stop=(0, 1))))
    assert (completion.tokens, completion.finish) == ((5, 9, 0), FinishReason.STOP)
    assert engine.requests == [ask((4, 5), seed=9, stop=(0, 1))]


def test_a_table() -> None:
    engine = Scripted(script=TABLE)
    tokens = [run(engine.generate(ask((5, 6), seed=seed, stop=(0,)))).tokens for seed in (0, 1, 2)]
    assert tokens == [(1, 2, 0), (3, 0), (1, 2, 0)]
    with pytest.raises(ValueError, match=r"got prompt \(1,\); need one of \[\(5, 6\)"):
        run(engine.generate(ask((1,))))


def test_replies_are_cut_as_a_model_would_end_them() -> None:
    def reply(_: Request) -> list[int]:
        return [1, 2, 0, 3, 4, 5]

    engine = Scripted(script=reply, context_tokens=6)
    for request, tokens, finish in [
        (ask((9,), stop=(0,)), (1, 2, 0), FinishReason.STOP),
        (ask((9,), stop=(0,), max_tokens=3), (1, 2, 0), FinishReason.STOP),
        (ask((9,), stop=(0,), max_tokens=2), (1, 2), FinishReason.LENGTH),
        (ask((9,) * 4, stop=(0,)), (1, 2), FinishReason.LENGTH),
        (ask((9,), max_tokens=5), (1, 2, 0, 3, 4), FinishReason.LENGTH),
    ]:
        completion = run(engine.generate(request))
        assert (completion.tokens, completion.finish) == (tokens, finish)
    with pytest.raises(ValueError, match="got 6 tokens for a request without stop tokens; need 8"):
        run(Scripted(script=reply).generate(ask((9,), max_tokens=8)))


def test_score_agrees_with_generate_and_moves_with_the_version() -> None:
    engine = Scripted(script=_echo)

    async def main(temperature: float) -> tuple[Completion, tuple[float, ...]]:
        completion = await engine.generate(ask((4, 5), seed=9, stop=(0,), temperature=temperature))
        return completion, await engine.score((4, 5), completion.tokens, temperature)

    completion, score = run(main(0.5))
    assert completion.logprobs == score
    assert all(-1.5 <= logprob <= 0 for logprob in score)
    assert completion.entropies is not None
    assert len(completion.entropies) == 3
    engine.load_weights({}, 4)
    moved, score = run(main(0.5))
    assert moved.policy_version == engine.policy_version == 4
    assert moved.logprobs == score
    assert not set(moved.logprobs) & set(completion.logprobs)
    greedy = run(engine.generate(ask((4, 5), seed=9, stop=(0,), temperature=0.0)))
    assert set(greedy.logprobs) == {0.0}


def test_mishaps() -> None:
    replies = {0: InjectedFault.FAULT, 1: InjectedFault.ABORTED, 2: InjectedFault.SILENCE, 3: (1,)}
    engine = Scripted(script=lambda request: replies[request.seed])

    async def main() -> None:
        asked = [asyncio.create_task(engine.generate(ask((1,), seed=seed, stop=(0,)))) for seed in range(4)]
        answered = {task for task in asked if task is not asked[2]}
        await asyncio.wait(answered)
        assert not asked[2].done()
        assert isinstance(asked[0].exception(), EngineFault)
        assert asked[1].result().tokens == ()
        assert asked[1].result().finish is FinishReason.ABORTED
        assert asked[3].result().tokens == (1, 0)
        with pytest.raises(RuntimeError, match="with 1 requests in flight; need none"):
            engine.load_weights({}, 1)
        asked[2].cancel()
        await asyncio.wait(asked)
        engine.load_weights({}, 1)

    run(main())


def test_latency() -> None:
    engine = Scripted(script=TABLE, latency_s=0.05)

    async def main() -> float:
        begin = asyncio.get_running_loop().time()
        await asyncio.gather(*(engine.generate(ask((5, 6), seed=seed, stop=(0,))) for seed in range(20)))
        return asyncio.get_running_loop().time() - begin

    # Requests wait side by side.
    assert 0.045 < run(main()) < 1


def test_what_is_refused() -> None:
    engine = Scripted(script=TABLE, context_tokens=2)
    with pytest.raises(ValueError, match="got a prompt of 2 tokens; need at least 1 and fewer than the context of 2"):
        run(engine.generate(ask((5, 6))))
    with pytest.raises(ValueError, match="need at least 1e-05"):
        run(engine.score((1,), (1,), 0.0))
    with pytest.raises(ValueError, match="context_tokens: got 1; need at least 2"):
        Scripted(script=TABLE, context_tokens=1)
    with pytest.raises(ValueError, match="latency_s: got -1"):
        Scripted(script=TABLE, latency_s=-1.0)
    run(engine.close())
    run(engine.close())
    with pytest.raises(EngineFault, match="closed"):
        run(engine.generate(ask((7,))))


def test_alternatives_agree_with_log_probabilities() -> None:
    engine = Scripted(script=_echo)
    request = ask((4, 5), seed=9, stop=(0,), temperature=0.5)
    assert run(engine.generate(request)).top_probs is None
    request = replace(request, sampling=replace(request.sampling, top_probs=3))
    completion, scored = run(engine.generate(request)), run(engine.score((4, 5), (5, 9, 0)))
    assert completion.top_probs is not None
    assert len(completion.top_probs) == 3
    for token, logprob, likely in zip(completion.tokens, scored, completion.top_probs, strict=True):
        assert len(likely) == 3
        assert dict(likely)[token] == pytest.approx(exp(logprob))
        chances = [chance for _, chance in likely]
        assert chances == sorted(chances, reverse=True)
        assert 0 < sum(chances) <= 1
    assert run(engine.generate(request)) == completion
