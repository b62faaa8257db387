"""The server, through OpenAI's own client: in this process, and over a socket."""

import asyncio
import json
import socket
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import openai
import pytest
from openai import AsyncOpenAI
from tests.serve.wire import END, ByteChat, client, scripted, sessions

from bough.engine import InjectedFault, Local, OpenAi, Request, Sampling, Scripted
from bough.policy import Tiny
from bough.serve import Conversations, EngineSession, conversation
from bough.serve.address import check_address
from bough.serve.server import serve
from bough.tree import Message

Result = TypeVar("Result")
HI: Any = [{"role": "user", "content": "hi"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}
]
CALL = '{"name": "add", "arguments": {"a": 1, "b": 2}}'


def run(main: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(main)


@contextmanager
def refused(kind: type[openai.APIStatusError], *words: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value.body, dict)
    assert {"message", "type", "code", "param"} <= caught.value.body.keys()


async def chat(used: AsyncOpenAI, messages: Any = HI, **fields: Any) -> Any:
    return await used.chat.completions.create(**({"model": "tiny", "messages": messages} | fields))


def test_a_chat_with_a_tool_goes_round() -> None:
    async def main() -> None:
        engine = scripted(CALL, "three")
        async with client(engine) as used:
            first = await chat(used, tools=TOOLS)
            said = first.choices[0]
            assert (said.finish_reason, said.message.content) == ("tool_calls", None)
            call = said.message.tool_calls[0]
            assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1, "b": 2})
            assert first.usage.completion_tokens == len(CALL) + 1
            messages = [*HI, said.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "3"}]
            second = await chat(used, messages, tools=TOOLS)
            assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("three", "stop")
        prompts = [request.prompt_tokens for request in engine.requests]
        sampled = ByteChat().write(CALL)
        assert prompts[1][: len(prompts[0]) + len(sampled)] == (*prompts[0], *sampled), "spliced in as sampled"
        assert ByteChat().text(prompts[0]).startswith("add"), "the tools are in the prompt"

    run(main())


def tool_of(schema: dict[str, Any]) -> list[Any]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


def called(ids: Sequence[str], answered: Sequence[str]) -> list[dict[str, Any]]:
    """A message with calls, and the results in an order of their own."""
    calls = [{"id": each, "type": "function", "function": {"name": "add", "arguments": "{}"}} for each in ids]
    results = [{"role": "tool", "tool_call_id": each, "content": f"result {each}"} for each in answered]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def test_results_are_matched_by_id_and_parts_of_text_are_lines() -> None:
    async def main() -> None:
        engine = scripted("yes")
        async with client(engine) as used:
            for answered in (["a", "b"], ["b", "a"]):
                await chat(used, [*HI, *called(["a", "b"], answered)], tools=TOOLS)
            parts = [{"type": "text", "text": each} for each in ("Say", "hi")]
            await chat(used, [{"role": "user", "content": parts}])
        one, other, last = (request.prompt_tokens for request in engine.requests)
        assert one == other
        assert ByteChat().text(one).index("result a") < ByteChat().text(one).index("result b")
        assert "Say\nhi" in ByteChat().text(last)

    run(main())


def test_sampled_messages_are_spliced_by_content_and_history() -> None:
    chats = Conversations(ByteChat())
    one, two = (Message(role="user", content=text) for text in ("one", "two"))
    # Two samples with one text: the second has no end mark.
    assert chats.answer([one], [*b"yes", END], 0) == chats.answer([two], [*b"yes"], 0)
    back = Message(role="assistant", content="yes")
    assert chats.prompt([one, back], ()) == chats.renderer.render([one, chats.answer([one], [*b"yes", END], 0)])
    assert chats.prompt([two, back], ()).count(END) == 1
    rendered = chats.prompt([one, Message(role="assistant", content="no")], ())
    assert ByteChat().text(rendered) == "oneno"


def test_the_least_recently_used_messages_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "KEEP", 2)
    chats, hi = Conversations(ByteChat()), Message(role="user", content="hi")

    def kept(text: str) -> bool:
        """Whether the message is rendered as sampled, without an end mark of its own."""
        return chats.prompt([hi, Message(role="assistant", content=text)], ()).count(END) == 1

    for text in ("one", "two"):
        chats.answer([hi], [*text.encode()], 0)
    assert kept("one")
    chats.answer([hi], [*b"three"], 0)
    assert [kept(text) for text in ("one", "two", "three")] == [True, False, True]


def test_a_malformed_call_is_text() -> None:
    async def main() -> None:
        async with client(scripted('{"name": broken')) as used:
            said = (await chat(used, tools=TOOLS)).choices[0]
            assert (said.finish_reason, said.message.content) == ("stop", '{"name": broken')
            assert said.message.tool_calls is None

    run(main())


def test_a_stream_has_the_same_answer() -> None:
    async def main() -> None:
        async with client(scripted("two\nlines", CALL)) as used:
            options = {"stream": True, "stream_options": {"include_usage": True}, "logprobs": True}
            chunks = [chunk async for chunk in await chat(used, **options)]
            assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == "two\nlines"
            assert [each.choices[0].finish_reason for each in chunks[:-1]][-1] == "stop"
            assert len(chunks[-2].choices[0].logprobs.content) == 10
            assert chunks[-1].usage.completion_tokens == 10
            async with used.chat.completions.stream(model="tiny", messages=HI, tools=TOOLS) as stream:
                final = await stream.get_final_completion()
            assert json.loads(final.choices[0].message.tool_calls[0].function.arguments) == {"a": 1, "b": 2}

    run(main())


def test_logprobs_are_those_of_the_engine() -> None:
    async def main() -> None:
        engine = scripted("yes")
        async with client(engine) as used:
            answer = await chat(used, logprobs=True, top_logprobs=3, seed=1)
            listed = answer.choices[0].logprobs.content
            assert [each.token for each in listed] == ["y", "e", "s", ""]
            tokens = ByteChat().write("yes")
            known = await engine.score(engine.requests[0].prompt_tokens, tokens)
            assert [each.logprob for each in listed] == pytest.approx(known)
            assert [len(each.top_logprobs) for each in listed] == [3] * 4

    run(main())


def test_completions_take_and_return_token_ids() -> None:
    async def main() -> None:
        async with client(scripted("yes")) as used:
            extra = {"return_token_ids": True}
            answer = await used.completions.create(model="tiny", prompt=[1, 2], n=2, logprobs=1, extra_body=extra)
            assert [choice.text for choice in answer.choices] == ["yes", "yes"]
            assert answer.usage.prompt_tokens == 2, "one prompt, whatever its choices"  # type: ignore[union-attr]
            assert answer.choices[1].token_ids == [*b"yes", END]  # type: ignore[attr-defined]
            assert answer.choices[0].prompt_token_ids == [1, 2]  # type: ignore[attr-defined]
            assert answer.choices[0].logprobs.tokens == ["y", "e", "s", ""]  # type: ignore[union-attr]
            several = await used.completions.create(model="tiny", prompt=["a", "bc"], max_tokens=2, stream=False)
            assert [choice.index for choice in several.choices] == [0, 1]
            assert several.usage.prompt_tokens == 3  # type: ignore[union-attr]
            assert {choice.finish_reason for choice in several.choices} == {"length"}

    run(main())


def test_sampling_settings_and_seeds_reach_the_engine() -> None:
    async def main() -> None:
        engine = scripted("yes")
        async with client(engine) as used:
            await chat(used, temperature=0.5, top_p=0.9, max_completion_tokens=7, seed=3)
            await chat(used, seed=3)
            await chat(used, n=2)
        first, second, *others = engine.requests
        assert first.sampling == Sampling(temperature=0.5, top_p=0.9, max_tokens=7)
        assert first.seed == second.seed
        assert len({each.seed for each in (first, *others)}) == 3

    run(main())


def test_the_choices_of_a_request_with_a_seed_differ() -> None:
    async def main() -> None:
        engine = scripted("yes")
        async with client(engine) as used:
            for _ in range(2):
                await chat(used, n=2, seed=3)
        one, other, *again = [each.seed for each in engine.requests]
        assert one != other
        assert again == [one, other]

    run(main())


@pytest.mark.parametrize(
    ("stop", "text"),
    [("Obs", "I add.\n"), (["never", "add"], "I "), (["\nObs", "3"], "I add."), (["I"], ""), ("never", None)],
)
def test_an_answer_ends_before_the_first_stop_string(stop: Any, text: str | None) -> None:
    async def main() -> None:
        whole = "I add.\nObs: 3"
        engine = scripted(whole, whole, whole)
        async with client(engine) as used:
            said = (await chat(used, stop=stop, logprobs=True)).choices[0]
            assert said.message.content == (whole if text is None else text)
            assert said.finish_reason == "stop"
            assert "".join(each.token for each in said.logprobs.content) == said.message.content
            plain = await used.completions.create(model="tiny", prompt="hi", stop=stop)
            assert plain.choices[0].text == said.message.content
            back = [*HI, said.message.to_dict(), {"role": "user", "content": "on"}]
            await chat(used, back)
        prompt = engine.requests[-1].prompt_tokens
        assert ByteChat().text(prompt) == f"hi{said.message.content}on", "the model reads what the client has"
        assert prompt.count(END) == 3, "with an end mark, which the cut tokens have not"

    run(main())


def test_a_call_before_a_stop_string_is_a_call_and_tool_choice_none_hides_the_tools() -> None:
    async def main() -> None:
        engine = scripted(CALL, "no tools")
        async with client(engine) as used:
            said = (await chat(used, tools=TOOLS, tool_choice="auto", stop=["never"])).choices[0]
            assert said.message.tool_calls[0].function.name == "add"
            await chat(used, tools=TOOLS, tool_choice="none")
        first, second = (ByteChat().text(request.prompt_tokens) for request in engine.requests)
        assert (first, second) == ("addhi", "hi")

    run(main())


def test_a_model_of_every_name_is_listed_and_fields_without_effect_are_taken() -> None:
    async def main() -> None:
        async with client(scripted("yes", "yes"), models=()) as used:
            (listed,) = [each.id async for each in used.models.list()]
            idle: dict[str, Any] = {"service_tier": "auto", "verbosity": "low", "modalities": ["text"]}
            for model in (listed, "gpt-4o-mini"):
                said = await chat(used, model=model, **idle, safety_identifier="x", extra_body={"other": None})
                assert said.model == model
            with refused(openai.BadRequestError, "modalities"):
                await chat(used, modalities=["text", "audio"])

    run(main())


def test_models_and_health() -> None:
    async def main() -> None:
        async with client(scripted("yes")) as used:
            assert [each.id async for each in used.models.list()] == ["tiny"]
            assert (await used.models.retrieve("tiny")).owned_by == "bough"
            with refused(openai.NotFoundError, "'big'", "tiny"):
                await used.models.retrieve("big")
            assert await used.get("/../health", cast_to=str) == '{"status":"ok"}'

    run(main())


def test_the_clients_error_has_the_words_of_the_refusal() -> None:
    async def main() -> None:
        async with client(scripted("yes")) as used:
            with refused(openai.BadRequestError, "temperature", "5"):
                await chat(used, temperature=5)
            with refused(openai.BadRequestError, "reasoning_content", "has none"):
                await chat(used, [*HI, {"role": "assistant", "content": "x", "reasoning_content": "y"}])
            with refused(openai.BadRequestError, "unheard_of"):
                await chat(used, extra_body={"unheard_of": 2})

    run(main())


@pytest.mark.parametrize("tokens", [4096, 5000])
def test_a_prompt_that_is_too_long_has_openais_code(tokens: int) -> None:
    async def main() -> None:
        async with client(scripted("yes")) as used:
            with pytest.raises(openai.BadRequestError) as caught:
                await used.completions.create(model="tiny", prompt=[1] * tokens)
            assert caught.value.code == "context_length_exceeded"

    run(main())


def test_a_body_that_is_too_large_gets_status_413() -> None:
    async def main() -> None:
        async with client(scripted("yes"), body_bytes=1000) as used:
            assert (await chat(used)).choices
            with refused(openai.APIStatusError, "413", "more than 1000 bytes"):
                await chat(used, [{"role": "user", "content": "x" * 1000}])

    run(main())


def test_a_wrong_key_gets_status_401() -> None:
    async def main() -> None:
        async with client(scripted("yes"), key="right", used="right") as used:
            assert (await chat(used)).choices
        async with client(scripted("yes"), key="right", used="wrong") as used:
            with refused(openai.AuthenticationError, "Authorization: Bearer"):
                await chat(used)
            with refused(openai.AuthenticationError):
                await used.models.list()

    run(main())


@pytest.mark.parametrize("fault", [InjectedFault.FAULT, InjectedFault.ABORTED])
def test_faults_of_the_engine_get_status_503(fault: InjectedFault) -> None:
    async def main() -> None:
        async with client(Scripted(script=lambda _: fault)) as used:
            with refused(openai.InternalServerError, "503", "the engine"):
                await chat(used)

    run(main())


def test_unknown_paths_have_openais_form() -> None:
    async def main() -> None:
        async with client(scripted("yes")) as used:
            with refused(openai.NotFoundError, "/v1/embeddings"):
                await used.embeddings.create(model="tiny", input="x")

    run(main())


def test_forty_requests_in_flight_over_a_socket() -> None:
    async def main() -> None:
        flying = most = 0

        class Counted(Scripted):
            async def generate(self, request: Request) -> Any:
                nonlocal flying, most
                flying += 1
                most = max(most, flying)
                try:
                    while most < 40:
                        await asyncio.sleep(0.01)
                    return await super().generate(request)
                finally:
                    flying -= 1

        engine = Counted(script=lambda _: ByteChat().write("yes"))
        async with serve(sessions(engine)) as url, AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as used:
            answers = await asyncio.gather(*(chat(used) for _ in range(40)))
        assert {each.choices[0].message.content for each in answers} == {"yes"}
        assert most == 40

    run(main())


def test_the_server_binds_to_loopback_and_closes() -> None:
    async def main() -> str:
        async with serve(sessions(scripted("yes"))) as url:
            host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
            assert host == "127.0.0.1"
            own = socket.gethostbyname(socket.gethostname())
            if not own.startswith("127."):
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection(own, int(port))
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
        return url

    assert run(main())


@pytest.mark.parametrize(
    ("host", "key", "fine"),
    [
        ("127.0.0.1", "", True),
        ("localhost", "", True),
        ("0.0.0.0", "", False),
        ("0.0.0.0", "k", True),
        ("::", "", False),
    ],
)
def test_another_address_needs_a_key(host: str, key: str, fine: bool) -> None:
    if fine:
        check_address(host, key)
    else:
        with pytest.raises(ValueError, match="--key"):
            check_address(host, key)


def test_a_client_that_leaves_frees_the_engine() -> None:
    async def main() -> None:
        ended = asyncio.Event()

        class Slow(Scripted):
            async def generate(self, request: Request) -> Any:
                try:
                    return await super().generate(request)
                finally:
                    ended.set()

        engine = Slow(script=lambda _: InjectedFault.SILENCE)
        async with serve(sessions(engine)) as url, AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as used:
            with pytest.raises(openai.APITimeoutError):
                await used.with_options(timeout=0.2).chat.completions.create(model="tiny", messages=HI)
            await asyncio.wait_for(ended.wait(), 60)

    run(main())


def test_boughs_own_client_reads_token_ids_and_logprobs_of_a_real_model() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).build(["red green"])

    async def main() -> None:
        engine = Local(slots=4).build(policy)
        chats, sampling = Conversations(policy.renderer), Sampling(max_tokens=8)
        served = EngineSession(engine, chats, models=("tiny",), sampling=sampling, key="")
        request = Request(prompt_tokens=(5, 6, 7), sampling=sampling, stop_tokens=policy.renderer.stop_tokens, seed=1)
        async with serve(served) as url:
            remote = OpenAi(model="tiny", base_url=url, api="completions", logprobs="sampled", extra={}).build()
            completion = await remote.generate(request)
            await remote.close()
        known = await engine.score(request.prompt_tokens, completion.tokens)
        assert completion.logprobs == pytest.approx(known, abs=1e-4)
        await engine.close()

    run(main())
