import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from email.utils import formatdate
from typing import Any, TypeVar

import numpy as np
import pytest
from endpoint import DROP, HANG, Asked, Endpoint, Reply, Say, chat, complete, error, follow
from tests.explore.stage import World
from toys import ask, run

from bough.config.config import dump, load
from bough.context import Context, Full, Plain, Window
from bough.engine import Completion, Engine, EngineFault, FinishReason, OpenAi, Request, Sampling
from bough.engine.openai import OpenAiEngine
from bough.engine.usage import ServerUsage
from bough.env import InProcessHost
from bough.explore import Chains
from bough.grammar import Grammar
from bough.rollout import Agent, Deadlines, Limits, RolloutRunner
from bough.tree import Outcome, Source, Task, Tree, leaves

T = TypeVar("T")

END = 259
PROMPT = (257, 104, 105, 259, 258)
"""A user says hi."""


def hi(seed: int = 0, **sampling: Any) -> Request:
    return ask(PROMPT, stop=(END,), seed=seed, **sampling)


def serve(
    reply: Callable[[Asked], Reply],
    use: Callable[[OpenAiEngine, Endpoint], Coroutine[Any, Any, T]],
    **config: Any,
) -> tuple[T, Endpoint]:
    """Use an engine against a server, close it, and see that nothing is left."""

    async def main() -> tuple[T, Endpoint]:
        async with Endpoint(reply) as endpoint:
            config_ = {"model": "m", "base_url": endpoint.url, "backoff_s": 0.001} | config
            engine = OpenAi(**config_).build()
            try:
                result = await use(engine, endpoint)
            finally:
                await engine.close()
                await engine.close()
            await until(lambda: endpoint.connections == endpoint.flying == 0)
            mine = asyncio.current_task()
            assert not [task for task in asyncio.all_tasks() if task is not mine and "_insist" in repr(task)]
            return result, endpoint

    return run(main())


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not true():
            await asyncio.sleep(0.005)


def one(request: Request) -> Callable[[OpenAiEngine, Endpoint], Coroutine[Any, Any, Completion]]:
    return lambda engine, _: engine.generate(request)


def replies(*given: Reply) -> Callable[[Asked], Reply]:
    """Each in turn."""
    rest = iter(given)
    return lambda _: next(rest)


def faults(reply: Callable[[Asked], Reply], message: str, request: Request | None = None, **config: Any) -> Endpoint:
    async def use(engine: OpenAiEngine, _: Endpoint) -> None:
        with pytest.raises(EngineFault, match=message):
            await engine.generate(request or hi())

    return serve(reply, use, **config)[1]


def test_it_is_an_engine() -> None:
    engine: Engine = OpenAi(model="m", base_url="http://127.0.0.1:1/v1", context_tokens=50).build()
    assert isinstance(engine, Engine)
    assert (engine.policy_version, engine.context_tokens) == (0, 50)
    engine.reset_cache()
    with pytest.raises(RuntimeError, match=r"version 3 for the server at http://127.* need an engine in this process"):
        engine.load_weights({}, 3)


def test_a_training_run_cannot_have_it() -> None:
    with pytest.raises(ValueError, match="got a policy to sample from and the server at http://x/v1, which keeps its"):
        OpenAi(model="m", base_url="http://x/v1").build(object())


def test_it_is_written_down_and_read_again() -> None:
    config = OpenAi(
        model="m",
        base_url="http://x/v1",
        api="completions",
        extra={"a": None, "b": {"c": 1}},
        price_per_million=(1.0, 2.0),
    )
    assert load(json.loads(json.dumps(dump(config)))) == config


def test_a_chat_sends_messages_and_gets_text() -> None:
    got, endpoint = serve(lambda _: chat("hö"), one(hi(seed=2**40 + 5, temperature=0.5, top_p=0.9)))
    assert got == Completion(
        tokens=(*"hö".encode(), END), logprobs=None, entropies=None, finish=FinishReason.STOP, policy_version=0
    )
    (asked,) = endpoint.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 8,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 5,
    }


def test_what_a_request_says_besides() -> None:
    extra = {"seed": None, "temperature": None, "reasoning_effort": "low"}
    _, endpoint = serve(lambda _: chat("a"), one(hi()), extra=extra, limit="max_completion_tokens")
    assert endpoint.asked[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 8,
        "top_p": 1.0,
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize(
    ("said", "tokens", "finish"),
    [
        (chat("1234567"), [*b"1234567", END], FinishReason.STOP),
        (chat("12345678"), b"12345678", FinishReason.LENGTH),
        (chat("123456789", "length"), b"12345678", FinishReason.LENGTH),
        (chat("1234567é"), b"1234567", FinishReason.LENGTH),
        (chat("up", "length"), b"up", FinishReason.LENGTH),
        (chat("up", "content_filter"), b"", FinishReason.ABORTED),
        (chat(None), [END], FinishReason.STOP),
        (
            Say(body={"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}),
            [*b"no", END],
            FinishReason.STOP,
        ),
    ],
)
def test_how_a_chat_ends(said: Say, tokens: Sequence[int], finish: FinishReason) -> None:
    got, _ = serve(lambda _: said, one(hi()))
    assert (got.tokens, got.finish) == (tuple(tokens), finish)


def test_a_chat_that_only_thought_is_a_fault() -> None:
    faults(lambda _: chat("", "length"), "m wrote no text within 8 tokens; .* OpenAi.extra={'max_tokens': 4096}")
    faults(lambda _: chat("a", "eos"), "got finish_reason 'eos' from .*; need one of")


def test_a_completion_is_no_longer_than_it_may_be() -> None:
    """Budgets are counted in the tokens that come back, and the end of the context is one."""
    got, endpoint = serve(lambda _: chat("123456789"), one(hi()), context_tokens=len(PROMPT) + 3)
    assert (got.tokens, got.finish) == (tuple(b"123"), FinishReason.LENGTH)
    assert endpoint.asked[0].body["max_tokens"] == 3
    thinks = {"max_tokens": 4096}
    got, endpoint = serve(lambda _: chat("123456789"), one(hi()), extra=thinks)
    assert (got.tokens, endpoint.asked[0].body["max_tokens"]) == (tuple(b"12345678"), 4096)


@pytest.mark.parametrize("context", [Full(), Window(turns=1)])
def test_an_episode(context: Context) -> None:
    """What a server writes is in the tree as a teacher's; it reads the conversation that the context chose."""

    def reply(asked: Asked) -> Reply:
        if asked.body["seed"] % 5 == 0:
            return error(500, "no")
        said = [message["content"] for message in asked.body["messages"] if message["role"] == "user"]
        return chat("b" if asked.body["seed"] % 2 else "a" if said[-1] in (".", "a", "aa") else "?")

    async def use(engine: OpenAiEngine, _: Endpoint) -> Tree:
        agent = Agent(
            engine=engine, renderer=engine.renderer, context=context, parser=Plain(), sampling=Sampling(max_tokens=8)
        )
        host = InProcessHost(env=World())
        place = RolloutRunner(
            agent=agent, host=host, instructions="go", limits=Limits(tree_tokens=200), deadlines=Deadlines()
        )
        try:
            (tree,) = (await place.run(Chains(n=8), [Task(id="task")], seed=1)).trees
        finally:
            await host.close()
        return tree

    tree, endpoint = serve(reply, use, context_tokens=400, retries=0)
    acted = tree.source == Source.TEACHER
    assert set(tree.outcome[leaves(tree)].tolist()) == {Outcome.TERMINATED, Outcome.FAILED}
    assert tree.sampled.sum() == 0
    assert np.isnan(tree.logprob).all()
    assert {tree.info[node]["text"] for node in np.flatnonzero(acted)} >= {"a", "b"}
    last = endpoint.asked[-1].body["messages"]
    assert last[0] == {"role": "system", "content": "go"}
    assert [message["role"] for message in last[1:]] == (["user", "assistant"] * 9)[: len(last) - 1]
    assert len(last) == 2 if context == Window(turns=1) else len(last) > 2


def expected(prompt: Sequence[int], count: int, stop: Sequence[int] = ()) -> list[tuple[int, float]]:
    written = [follow(prompt[-1])]
    while len(written) < count and written[-1][0] not in stop:
        written.append(follow(written[-1][0]))
    return written


@pytest.mark.parametrize("ids", [True, False])
def test_tokens_go_out_and_come_back(ids: bool) -> None:
    got, endpoint = serve(lambda asked: complete(asked, ids), one(ask((4, 5), max_tokens=3, seed=7)), api="completions")
    tokens, logprobs = zip(*expected((4, 5), 3), strict=True)
    assert got == Completion(
        tokens=tokens, logprobs=logprobs, entropies=None, finish=FinishReason.LENGTH, policy_version=0
    )
    (asked,) = endpoint.asked
    assert asked.path == "/v1/completions"
    assert asked.body["prompt"] == [4, 5]
    # A model's own settings (a server's generation_config) must not narrow what is drawn from.
    plain = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert asked.body.items() >= plain.items()


def test_a_stop_token_is_kept_and_the_context_ends_a_completion() -> None:
    stop = expected((5,), 2)[-1][0]
    got, _ = serve(complete, one(ask((4, 5), stop=(stop,))), api="completions")
    assert (got.tokens[-1], len(got.tokens), got.finish) == (stop, 2, FinishReason.STOP)
    got, _ = serve(complete, one(ask((4, 5), max_tokens=9)), api="completions", context_tokens=6)
    assert (len(got.tokens), got.finish) == (4, FinishReason.LENGTH)


@pytest.mark.parametrize(
    ("logprobs", "temperature", "top_p", "known"),
    [
        ("raw", 1.0, 1.0, True),
        ("raw", 0.7, 1.0, False),
        ("raw", 1.0, 0.9, False),
        ("tempered", 0.7, 1.0, True),
        ("tempered", 0.7, 0.9, False),
        ("sampled", 0.7, 0.9, True),
    ],
)
def test_logprobs_are_those_of_what_was_sampled_from_or_none(
    logprobs: str, temperature: float, top_p: float, known: bool
) -> None:
    request = ask((4, 5), max_tokens=2, temperature=temperature, top_p=top_p)
    got, _ = serve(complete, one(request), api="completions", logprobs=logprobs)
    assert got.logprobs == (tuple(value for _, value in expected((4, 5), 2)) if known else None)


def test_greedy_logprobs_are_zero() -> None:
    got, _ = serve(complete, one(ask((4, 5), max_tokens=3, temperature=0.0)), api="completions")
    assert got.logprobs == (0.0, 0.0, 0.0)


def test_score_agrees_with_generate() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> tuple[Completion, tuple[float, ...], tuple[float, ...]]:
        completion = await engine.generate(ask((4, 5), max_tokens=4))
        return completion, await engine.score((4, 5), completion.tokens), await engine.score((4, 5), (1, 2))

    (completion, same, other), _ = serve(complete, use, api="completions")
    assert completion.logprobs == same
    assert other == (-6.0, -7.0)


def test_several_continuations_are_scored_in_one_request() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> tuple[object, list[object]]:
        each = ((1, 2), (3,), (7, 8, 9))
        together = await engine.score_each((4, 5), each)
        return together, [await engine.score((4, 5), one) for one in each]

    (together, alone), endpoint = serve(complete, use, api="completions")
    assert list(together) == alone
    assert len(endpoint.asked) == 1 + 3


def test_servers_return_neither_alternatives_nor_allowed_tokens() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> None:
        request = ask((4, 5))
        with pytest.raises(ValueError, match=r"Sampling\.top_probs: got 2 and a server, .*need an engine in this"):
            await engine.generate(replace(request, sampling=replace(request.sampling, top_probs=2)))
        with pytest.raises(ValueError, match=r"got a restricted answer .* with engine=OpenAi, whose server does not"):
            await engine.generate(replace(request, grammar=Grammar.of_texts(["yes"])))

    _, endpoint = serve(complete, use, api="completions")
    assert not endpoint.asked


def test_what_is_not_scored() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> None:
        with pytest.raises(ValueError, match=r"got temperature 0\.5; need 1"):
            await engine.score((1,), (2,), 0.5)
        with pytest.raises(ValueError, match="got 60 tokens; need fewer than the context of 50"):
            await engine.score((1,) * 59, (2,))
        with pytest.raises(ValueError, match="prompt of 0 tokens"):
            await engine.score((), (2,))
        with pytest.raises(EngineFault, match=r"got log-probabilities of 1 tokens from .* need those of all 3"):
            await engine.score((1, 2), (2,))
        with pytest.raises(ValueError, match="got api='completions', whose tokens are those of the server's model"):
            _ = engine.renderer

    def deaf(asked: Asked) -> Say:
        del asked.body["echo"]
        return complete(asked)

    serve(deaf, use, api="completions", context_tokens=50)

    async def mute(engine: OpenAiEngine, _: Endpoint) -> None:
        with pytest.raises(ValueError, match="got api='chat', which says nothing of given tokens"):
            await engine.score((1,), (2,))

    serve(lambda _: chat("a"), mute)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"finish_reason": "stop", "text": "ab"}, "says no token ids; need a server that does"),
        ({"finish_reason": "stop", "logprobs": {"tokens": ["a"], "token_logprobs": [-1.0]}}, "says no token ids"),
        ({"finish_reason": "stop", "token_ids": []}, "got a completion of no tokens"),
        ({"finish_reason": "stop", "token_ids": [1, 2]}, "got 0 log-probabilities from .* for 2 tokens; need one"),
        (
            {"finish_reason": "stop", "token_ids": [1], "logprobs": {"token_logprobs": [None]}},
            "got 1 of 1 log-probabilities as null",
        ),
    ],
)
def test_a_server_that_does_not_say_what_was_sampled(choice: dict[str, Any], message: str) -> None:
    endpoint = faults(lambda _: Say(body={"choices": [choice]}), message, ask((1,)), api="completions")
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        DROP,
        HANG,
        *(error(status, "later") for status in (408, 409, 429, 500, 503)),
        Say(body=b'{"choices": [{"finish'),
        Say(body=b"<html>busy</html>", headers={"content-type": "text/html"}),
        Say(body={"error": {"message": "overloaded"}}),
    ],
)
def test_what_passes_is_asked_again(trouble: Reply) -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> tuple[Completion, ServerUsage]:
        return await engine.generate(hi()), engine.usage

    (got, usage), endpoint = serve(replies(trouble, trouble, chat("up")), use, deadline_s=1.0, retries=2)
    assert got.tokens == (*b"up", END)
    assert len(endpoint.asked) == 3
    assert usage == ServerUsage(requests=1, retries=2, prompt_tokens=10, completion_tokens=4)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (
            DROP,
            r"127.* \(asked 3 times\): the connection broke \(RemoteProtocolError.*check that the server runs there",
        ),
        (HANG, r"\(asked 3 times\): no answer within 0.1 s \(OpenAi.deadline_s\)"),
        (error(503, "too much"), r"\(asked 3 times\): status 503: too much"),
        (Say(body=b"{"), r"got an answer that is none \(answer: Invalid JSON"),
        (Say(body={"choices": []}), r"got an answer that is none \(choices: List should have at least 1"),
    ],
)
def test_after_the_last_retry_it_is_a_fault(trouble: Reply, message: str) -> None:
    assert len(faults(lambda _: trouble, message, deadline_s=0.1, retries=2).asked) == 3


def test_nobody_listens() -> None:
    async def main() -> None:
        async with Endpoint(lambda _: DROP) as endpoint:
            url = endpoint.url
        engine = OpenAi(model="m", base_url=url, retries=1, backoff_s=0.0).build()
        with pytest.raises(EngineFault, match=r"asked 2 times\): the connection broke \(ConnectError"):
            await engine.generate(hi())
        await engine.close()

    run(main())


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (error(401, "bad key"), "status 401: bad key; set OpenAi.key_env, and that it may use the model m"),
        (error(404, "no m"), "status 404: no m; check OpenAi.base_url .* OpenAi.model .now m. and OpenAi.api"),
        (error(400, "maximum context length is 9"), "lower OpenAi.context_tokens, or read less"),
        (error(422, "what is seed?"), "what is seed\\?; change or leave out what .* with OpenAi.extra"),
        (Say(status=400, body={"message": "old vLLM"}), "status 400: old vLLM; change"),
        (Say(status=400, body=b"<p>no</p>"), "status 400: <p>no</p>; change"),
        (Say(status=400, body=b""), "status 400: nothing said; change"),
        (
            Say(status=429, body={"error": {"message": "poor", "code": "insufficient_quota"}}),
            "status 429: poor; the key's account has no credit left",
        ),
        (error(429, "tomorrow", retry_after="90000"), "the server asks for a wait of 90000 s"),
    ],
)
def test_what_no_retry_mends_is_a_fault_at_once(trouble: Say, message: str) -> None:
    assert len(faults(lambda _: trouble, message).asked) == 1


def test_retry_after_is_honoured() -> None:
    def deadlines(endpoint: Endpoint) -> list[float]:
        return [b.at_s - a.at_s for a, b in zip(endpoint.asked, endpoint.asked[1:], strict=False)]

    slow = replies(error(429, "later", retry_after="0.3"), error(503, "later"), chat("up"))
    _, endpoint = serve(slow, one(hi()))
    first, second = deadlines(endpoint)
    assert first >= 0.3
    assert second < 0.2
    date = formatdate(time.time() + 90, usegmt=True)
    faults(lambda _: error(429, "later", retry_after=date), "asks for a wait of (89|90) s", deadline_s=80.0)
    _, endpoint = serve(replies(error(429, "later", retry_after="soon"), chat("up")), one(hi()))
    assert deadlines(endpoint)[0] < 0.2


def test_waits_double_and_vary_as_the_seed_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def slept(seed: int, **config: Any) -> list[float]:
        deadlines: list[float] = []
        real = asyncio.sleep

        async def sleep(wait_s: float) -> None:
            deadlines.append(wait_s)
            await real(0)

        with monkeypatch.context() as patch:
            patch.setattr("bough.engine.calls.asyncio.sleep", sleep)
            faults(lambda _: error(500, "no"), "asked 5 times", hi(seed=seed), **config)
        return deadlines[:4]

    deadlines = slept(3, backoff_s=1.0)
    jitter = random.Random(3)
    assert deadlines == [2**k * jitter.uniform(0.5, 1.5) for k in range(4)]
    assert deadlines == slept(3, backoff_s=1.0)
    assert deadlines != slept(4, backoff_s=1.0)
    assert max(slept(3, backoff_s=50.0, deadline_s=60.0)) == 60.0


def test_so_many_calls_at_a_time_in_order_of_arrival() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> list[Completion]:
        return await asyncio.gather(*(engine.generate(hi(seed=seed)) for seed in range(20)))

    def reply(asked: Asked) -> Say:
        return Say(body=chat(str(asked.body["seed"])).body, after_s=0.01)

    for places in (1, 3):
        got, endpoint = serve(reply, use, concurrency=places)
        assert endpoint.most == places
        arrived = [asked.body["seed"] for asked in endpoint.asked]
        # Calls that are in flight together race on their connections.
        assert all(abs(seed - place) < places for place, seed in enumerate(arrived))
        assert [bytes(completion.tokens[:-1]) for completion in got] == [str(seed).encode() for seed in range(20)]


def test_a_cancelled_call_leaves_the_server_and_frees_its_place() -> None:
    async def use(engine: OpenAiEngine, endpoint: Endpoint) -> Completion:
        hung = asyncio.create_task(engine.generate(hi(seed=1)))
        queued = asyncio.create_task(engine.generate(hi(seed=2)))
        after = asyncio.create_task(engine.generate(hi(seed=3)))
        await until(lambda: endpoint.flying == 1)
        queued.cancel()
        hung.cancel()
        done = await asyncio.gather(hung, queued, return_exceptions=True)
        assert [type(error) for error in done] == [asyncio.CancelledError] * 2
        await until(lambda: endpoint.left == 1)
        return await after

    got, endpoint = serve(lambda asked: HANG if asked.body["seed"] == 1 else chat("up"), use, concurrency=1)
    assert got.tokens == (*b"up", END)
    assert [asked.body["seed"] for asked in endpoint.asked] == [1, 3]


def test_closing_fails_what_is_in_flight() -> None:
    async def use(engine: OpenAiEngine, endpoint: Endpoint) -> None:
        asked = [asyncio.create_task(engine.generate(hi(seed=seed))) for seed in range(3)]
        await until(lambda: endpoint.flying == 2)
        await engine.close()
        for fault in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(fault, EngineFault)
            assert "the engine was closed" in str(fault)
        await until(lambda: endpoint.left == 2)
        with pytest.raises(EngineFault, match="the engine is closed; make a new one"):
            await engine.generate(hi())

    serve(lambda _: HANG, use, concurrency=2)


def test_usage_and_its_price() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> ServerUsage:
        assert engine.usage == ServerUsage(price=0.0)
        await engine.generate(hi())
        await engine.generate(hi())
        return engine.usage

    given = replies(chat("a", counts=(1000, 200)), error(500, "no"), chat("b", counts=(500, 100)))
    usage, _ = serve(given, use, price_per_million=(2.0, 10.0))
    assert (usage.requests, usage.retries, usage.prompt_tokens, usage.completion_tokens) == (2, 1, 1500, 300)
    assert usage.price == pytest.approx(0.006)


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    config = OpenAi(model="m", base_url="http://x/v1", key_env="MY_KEY")
    assert "secret" not in repr(config)
    endpoint = faults(lambda _: error(401, "got sk-secret"), r"got \*\*\*; check the key in MY_KEY", key_env="MY_KEY")
    assert endpoint.asked[0].headers["authorization"] == "Bearer sk-secret"
    # A key of the environment goes to no server unless it is named.
    _, endpoint = serve(lambda _: chat("a"), one(hi()))
    assert "sk-" not in json.dumps(dict(endpoint.asked[0].headers))
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ValueError, match=r"got 'MY_KEY', which is not set .*export MY_KEY=\.\.\."):
        config.build()


def test_openai_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "bough.engine.calls", raising=False)
    config = OpenAi(model="m", base_url="http://x/v1")
    with pytest.raises(ImportError, match=r"do: pip install 'bough-rl\[openai\]'"):
        config.build()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": ""}, "OpenAi.model: got ''"),
        ({"base_url": "localhost:8000"}, "OpenAi.base_url: got 'localhost:8000'; need http://"),
        ({"context_tokens": 1}, "OpenAi.context_tokens: got 1; need at least 2"),
        ({"concurrency": 0}, "OpenAi.concurrency: got 0; need at least 1"),
        ({"retries": -1}, "OpenAi.retries: got -1; need at least 0"),
        ({"backoff_s": -1.0}, "OpenAi.backoff_s: got -1"),
        ({"deadline_s": 0.0}, "OpenAi.deadline_s: got 0"),
        ({"price_per_million": (1.0, -1.0)}, "OpenAi.price_per_million: got"),
    ],
)
def test_what_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenAi(**{"model": "m", "base_url": "http://x/v1"} | config)


def test_prompts_that_are_refused() -> None:
    async def use(engine: OpenAiEngine, _: Endpoint) -> None:
        with pytest.raises(
            ValueError, match="got a prompt of 9 tokens; need at least 1 and fewer than the context of 9"
        ):
            await engine.generate(ask((256, *b"sevens."[:6], 259, 258), stop=(END,)))
        with pytest.raises(ValueError, match=r"got stop tokens \(0,\); need \(259,\)"):
            await engine.generate(ask(PROMPT, stop=(0,)))
        for prompt in ((1, 2), (257, 1, 259), (258,), (257, 104, 259, 258, 1), (257, 256, 259, 258), (9, 259, 258)):
            with pytest.raises(ValueError, match="got tokens that are no conversation"):
                await engine.generate(ask(prompt, stop=(END,)))

    _, endpoint = serve(lambda _: chat("a"), use, context_tokens=9)
    assert endpoint.asked == []
