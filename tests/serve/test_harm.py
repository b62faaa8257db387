"""What a client can't do to a server and to its other clients."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from pydantic import ValidationError
from starlette.requests import Request as HttpRequest
from tests.serve.wire import END, ByteChat, posted, scripted, sessions

from bough.engine import InjectedFault, Local, Request, Sampling, Scripted
from bough.policy import Tiny
from bough.serve import ApiError, Conversations, EngineSession, Session, connection, conversation, server
from bough.serve.address import check_address, listen
from bough.serve.app import make_app
from bough.serve.body import LARGE_BYTES, NESTED, Bodies
from bough.serve.dialects.chat.request import ChatRequest
from bough.serve.dialects.completions.answer import WINDOW, offsets
from bough.serve.dialects.completions.request import CompletionRequest
from bough.serve.dialects.messages.request import MessagesRequest
from bough.serve.dialects.responses.request import ResponsesRequest
from bough.serve.dialects.sampling_fields import MOST_CHOICES
from bough.serve.request import parse
from bough.serve.server import serve
from bough.serve.texts import CONTEXTS
from bough.tree import AgentAction, Message

Result = TypeVar("Result")
HI = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "tiny", "messages": HI}
COMPLETION: dict[str, Any] = {"model": "tiny", "prompt": "hi"}
MESSAGE: dict[str, Any] = {"max_tokens": 1, "messages": HI}
WRONG = [{}] * 5000
PATHS = ("chat/completions", "completions", "responses", "messages", "messages/count_tokens")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(main)


def post(url: str, body: bytes | dict[str, Any], path: str = "/v1/chat/completions", **headers: str) -> tuple[int, str]:
    """The status and the text of an answer; the headers are sent in UTF-8."""
    host, _, port = url.removeprefix("http://").removesuffix("/v1").rpartition(":")
    used = http.client.HTTPConnection(host, int(port), timeout=30)
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        used.request("POST", path, sent, {name: text.encode() for name, text in named.items()})
        answer = used.getresponse()
        return answer.status, answer.read().decode()
    finally:
        used.close()


def served(act: Callable[[str], Result], session: EngineSession | None = None, **settings: Any) -> Result:
    """What `act` returns, in a thread beside a server."""

    async def main() -> Result:
        async with serve(session or sessions(scripted("yes")), **settings) as url:
            return await asyncio.to_thread(act, url)

    return run(main())


def called(requests: Sequence[tuple[str, Any]], session: EngineSession | None = None) -> list[tuple[int, str]]:
    """The status and the text of each answer, in this process, without a socket."""

    async def main() -> list[tuple[int, str]]:
        app = make_app(session or sessions(scripted("yes")))
        sent = [(path, body if isinstance(body, bytes) else json.dumps(body).encode()) for path, body in requests]
        return [await posted(app, f"/v1/{path}", body) for path, body in sent]

    return run(main())


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (CompletionRequest, {"prompt": [1.5] * 5000}),
        (CompletionRequest, {"prompt": [["a"] * 100] * 100}),
        (CompletionRequest, {"prompt": [[1], *WRONG]}),
        (CompletionRequest, {**COMPLETION, "stop_token_ids": [-1] * 5000}),
        (ChatRequest, {"messages": WRONG}),
        (ChatRequest, {"messages": [{"role": "user", "content": WRONG}]}),
        (ChatRequest, {"messages": [*HI, {"role": "assistant", "tool_calls": WRONG}]}),
        (ChatRequest, {**CHAT, "tools": WRONG}),
        (ChatRequest, {**CHAT, "tools": [[[WRONG] * 9] * 9]}),
        (ChatRequest, {**CHAT, "stop": [1] * 5000}),
        (ChatRequest, {**CHAT, "logit_bias": {str(n): "x" for n in range(5000)}}),
        (ChatRequest, {**CHAT, "metadata": {str(n): 1 for n in range(5000)}}),
        (ResponsesRequest, {"input": WRONG}),
        (ResponsesRequest, {"input": [{"type": "reasoning", "content": WRONG}]}),
        (ResponsesRequest, {"input": [{"type": "function_call_output", "call_id": "1", "output": WRONG}]}),
        (ResponsesRequest, {"input": "hi", "tools": WRONG}),
        (ResponsesRequest, {"input": "hi", "include": WRONG}),
        (MessagesRequest, {"max_tokens": 1, "messages": WRONG}),
        (MessagesRequest, {"max_tokens": 1, "messages": [{"role": "user", "content": WRONG}]}),
        (MessagesRequest, {**MESSAGE, "system": WRONG}),
        (MessagesRequest, {**MESSAGE, "tools": WRONG}),
        (MessagesRequest, {**MESSAGE, "stop_sequences": WRONG}),
    ],
    ids=lambda given: next(reversed(given)) if isinstance(given, dict) else given.__name__,
)
def test_validation_stops_at_the_first_wrong_item(kind: Any, fields: dict[str, Any]) -> None:
    raw = json.dumps({"model": "m"} | fields).encode()
    with pytest.raises(ValidationError) as caught:
        kind.model_validate_json(raw)
    assert caught.value.error_count() < 10
    with pytest.raises(ApiError) as refused:
        parse(kind, raw)
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"model": "m", "input": []}, "input: List should have at least 1 item"),
        ({"model": "m"}, "input: Field required; send the field"),
        ({"model": "m", "input": 5}, "input: Input should be a valid string, got 5; change or leave out the field"),
        ("{", "; send a JSON object"),
    ],
    ids=["empty", "missing", "type", "no JSON"],
)
def test_a_refusal_says_what_to_do(raw: dict[str, Any] | str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(ResponsesRequest, (raw if isinstance(raw, str) else json.dumps(raw)).encode())
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stop": ""}, "stop: String should have at least 1 character, got ''; change or leave out the field"),
        ({"top_k": 3}, "top_k: got 3.0, which this server can't follow; need -1 or 0, or leave it out"),
    ],
    ids=["of a union", "neutral"],
)
def test_a_refusal_has_the_field_and_one_remedy(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(ChatRequest, json.dumps(CHAT | fields).encode())
    assert (refused.value.message, refused.value.param) == (message, next(iter(fields)))


def test_unknown_fields_are_one_error() -> None:
    with pytest.raises(ApiError, match="'0': got a field that this server does not have"):
        parse(ChatRequest, json.dumps(CHAT | {str(n): 1 for n in range(5000)}).encode())


def test_a_body_is_refused_by_its_size_before_it_is_read() -> None:
    def act(url: str) -> None:
        host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as used:
            used.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 99999999\r\n\r\n{"
            )
            assert b" 413 " in used.recv(2**16)
        assert post(url, CHAT)[0] == 200

    served(act)


def test_a_body_is_refused_by_its_brackets_before_it_is_parsed() -> None:
    for status, text in called([("chat/completions", mark * (NESTED + 1)) for mark in (b"[", b"{")]):
        assert status == 413
        assert f"need at most {NESTED}" in text


def large(rest: asyncio.Queue[dict[str, Any]] | None = None, body: bytes = b"x" * (LARGE_BYTES + 1)) -> HttpRequest:
    """A request whose body is there; what follows comes from a queue."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await (rest or asyncio.Queue()).get()

    headers = [(b"content-type", b"application/json; charset=utf-8")]
    return HttpRequest({"type": "http", "method": "POST", "headers": headers}, receive)


def test_large_bodies_are_parsed_in_a_thread() -> None:
    async def name(body: bytes) -> str:
        return await Bodies(10**6).read(large(body=body), lambda _: threading.current_thread().name)

    assert run(name(b"x" * LARGE_BYTES)) == threading.current_thread().name
    assert run(name(b"x" * (LARGE_BYTES + 1))).startswith("bough-serve")


def test_the_body_of_a_client_that_has_left_is_not_parsed() -> None:
    async def main() -> list[str]:
        bodies, parsed, going = Bodies(10**6), list[str](), threading.Event()
        first = asyncio.create_task(bodies.read(large(), lambda _: going.wait(5)))
        leaves, closes = asyncio.Queue[dict[str, Any]](), asyncio.Queue[dict[str, Any]]()
        # The first waits for the thread; the second has it, and rests there.
        left = asyncio.create_task(bodies.read(large(leaves), lambda _: parsed.append("left")))
        leaves.put_nowait({"type": "http.disconnect"})
        with pytest.raises(ApiError, match="the client closed the connection"):
            await left
        going.set()
        assert await first
        bodies._rested = time.monotonic() + 0.2  # pyright: ignore[reportPrivateUsage]
        closed = asyncio.create_task(bodies.read(large(closes), lambda _: parsed.append("closed")))
        await asyncio.sleep(0.05)
        closes.put_nowait({"type": "http.disconnect"})
        with pytest.raises(ApiError, match="the client closed the connection"):
            await closed
        await bodies.read(large(), lambda _: parsed.append("stays"))
        return parsed

    assert run(main()) == ["stays"]


def test_a_refused_body_is_dropped_up_to_a_bound_and_its_answer_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_S", 0.05)
    read = 0

    class Counted(connection.Connection):
        def data_received(self, data: bytes) -> None:
            nonlocal read
            read += len(data)
            super().data_received(data)

    monkeypatch.setattr(server, "Connection", Counted)

    def act(url: str) -> tuple[int, bytes]:
        host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
        used = http.client.HTTPConnection(host, int(port), timeout=60)
        with contextlib.suppress(OSError):
            used.request("POST", "/v1/completions", b" " * 2**26, {"Content-Type": "application/json"})
        answer = used.getresponse()
        return answer.status, answer.read()

    status, text = served(act)
    assert (status, b"got a body of more than" in text) == (413, True)
    assert read < 2**24


def test_a_connection_goes_on_after_refused_bodies_that_end() -> None:
    def act(url: str) -> list[int]:
        host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
        used = http.client.HTTPConnection(host, int(port), timeout=60)
        used.connect()
        found, sock = list[int](), used.sock
        for body in (b" " * 2**21, b" " * 2**21, b" " * 2**21, json.dumps(COMPLETION).encode()):
            used.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            answer = used.getresponse()
            answer.read()
            found.append(answer.status)
        assert used.sock is sock
        return found

    assert served(act, body_bytes=1000) == [413, 413, 413, 200]


class Counting(ByteChat):
    """Counts the characters that it tokenises; a hundred are one token."""

    def __init__(self, characters: int = 1) -> None:
        self.written, self.characters = 0, characters

    def write(self, action: AgentAction) -> tuple[int, ...]:
        self.written += len(str(action))
        return (*super().write(action)[: -1 : self.characters], END)

    def render(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> tuple[int, ...]:
        return super().render(messages, tools)[:: self.characters]


def counted(renderer: Counting) -> EngineSession:
    engine = scripted("yes", context_tokens=1000)
    return EngineSession(engine, Conversations(renderer), models=("tiny",), sampling=Sampling(max_tokens=9), key="")


def test_long_texts_are_tokenised_up_to_a_few_contexts() -> None:
    text = "x" * 100_000
    alone = {"messages": [{"role": "user", "content": text}]}
    bodies = {"completions": {"prompt": text}, "responses": {"input": text}, "messages": {"max_tokens": 9} | alone}
    requests = [(path, {"model": "tiny", **bodies.get(path, alone)}) for path in PATHS]
    renderer = Counting()
    for number, ((path, _), (status, words)) in enumerate(
        zip(requests, called(requests, counted(renderer)), strict=True), start=1
    ):
        assert status == 400
        assert ("prompt is too long" if "messages" in path else "context_length_exceeded") in words
        assert renderer.written <= 2 * CONTEXTS * 1000 * len(requests), number
    for status, _ in called(requests, counted(Counting(1000))):
        assert status == 200, "a text of few tokens is whole"


def test_arguments_that_are_no_json() -> None:
    wrong = '{"a":' + "[" * 3000 + "]" * 3000 + "}", '{"a":"\\ud800"}', '{"a":NaN}', "[" * 10**4, "1" * 5000
    calls = [{"id": "1", "function": {"name": "f", "arguments": arguments}} for arguments in wrong]
    messages = [[*HI, {"role": "assistant", "tool_calls": [call]}] for call in calls]
    for status, text in called([("chat/completions", CHAT | {"messages": each}) for each in messages]):
        assert status == 400
        assert "messages[1].tool_calls[0]" in text


def test_numbers_beyond_their_bounds() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"prompt": [2**70]}, "prompt.0"),
        ({"prompt": [1], "stop_token_ids": [2**70]}, "stop_token_ids.0"),
        ({"prompt": ["x"] * (MOST_CHOICES + 1)}, f"prompt: List should have at most {MOST_CHOICES} items"),
        ({"prompt": [[1]] * (MOST_CHOICES + 1)}, f"not {MOST_CHOICES + 1}, got [[1], [1]"),
        ({"prompt": "x", "stop": ["x"] * 17}, "stop: List should have at most 16 items after validation, not 17"),
        ({"prompt": ["x"] * 128, "logprobs": 20, "max_tokens": 900}, "got a request for up to 2,419,200 log-prob"),
        ({"prompt": "x", "model": "y" * 80 * 2}, "got model '" + "y" * 80 + "... (cut: 160 characters)'"),
        ({"prompt": "x", "model": "y" * 10**6}, "model: String should have at most 1024 characters, got 'yyyy"),
        ({"prompt": ["x"] * 2, "n": MOST_CHOICES}, f"got {2 * MOST_CHOICES} completions of 2 prompts"),
        ({"prompt": "x", "seed": 2**70}, "seed"),
        ({"prompt": "x", "max_tokens": 2**70}, "max_tokens"),
    ]
    answers = called([("completions", {"model": "tiny"} | fields) for fields, _ in wrong])
    for (_, words), (status, text) in zip(wrong, answers, strict=True):
        assert status == (404 if "got model" in words else 400)
        assert words in text
        assert len(text) < 1000


def test_tools_named_like_marks_are_refused_by_name() -> None:
    tool = {"type": "function", "function": {"name": "<|im_start|>", "parameters": {"type": "object"}}}
    ((status, text),) = called([("chat/completions", CHAT | {"tools": [tool]})])
    assert (status, "got the tool name '<|im_start|>'; need 1 to 128 letters" in text) == (400, True)


def test_a_tiny_temperature_is_greedy() -> None:
    engine = scripted("yes")
    assert called([("chat/completions", CHAT | {"temperature": 1e-310})], sessions(engine))[0][0] == 200
    assert engine.requests[0].sampling.temperature == 0


def test_pages_of_other_sites_are_refused() -> None:
    def act(url: str) -> None:
        for path, body in (("responses", {"model": "tiny", "input": "hi"}), ("messages", {"model": "tiny"} | MESSAGE)):
            for headers, status in (({"Content_Type": "text/plain"}, 415), ({"Host": "evil.example"}, 403), ({}, 200)):
                assert post(url, body, f"/v1/{path}", **headers)[0] == status
        assert post(url, CHAT, Content_Type="", x_api_key="any")[0] == 200
        assert post(url, CHAT, Content_Type="text/plain")[0] == 415
        assert post(url, CHAT, Content_Type="application/json; charset=utf-8")[0] == 200
        assert post(url, CHAT, Content_Type="", Authorization="Bearer any")[0] == 200, "needs the server's permission"
        for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1"):
            assert post(url, CHAT, Host=name)[0] == 403, name
        for name in ("localhost", "localhost:80", "127.0.0.1:1", "[::1]:99", "LOCALHOST"):
            assert post(url, CHAT, Host=name)[0] == 200, name

    served(act)


def test_keys_in_any_script() -> None:
    key = "schlüssel ключ鍵".replace(" ", "")

    def act(url: str) -> None:
        assert post(url, CHAT, Authorization=f"Bearer {key}")[0] == 200
        assert post(url, CHAT, Authorization=f"Bearer {key}x")[0] == 401

    served(act, sessions(scripted("yes"), key))


@pytest.mark.parametrize("key", ["secret\n", " secret", "a\tb"])
def test_keys_that_no_header_has(key: str) -> None:
    with pytest.raises(ValueError, match="need one without line breaks"):
        check_address("127.0.0.1", key)


def test_a_port_that_is_taken_or_none() -> None:
    with listen() as taken, pytest.raises(ValueError, match=f"port {taken.getsockname()[1]}: .*; need an address"):
        listen(port=taken.getsockname()[1])
    with pytest.raises(ValueError, match="got the port 99999; need 1 to 65535"):
        listen(port=99999)


def test_answers_are_sent_at_once() -> None:
    async def main() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen() as listener:
            async with await asyncio.start_server(connected, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                writer.close()
                return await found

    assert run(main()) != 0


@contextlib.asynccontextmanager
async def opened(url: str, text: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """The answers to a text on a connection of its own."""
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text)
    yield reader
    writer.close()


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(json.dumps(CHAT)), json.dumps(CHAT).encode())


def test_a_client_that_is_late_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CLIENT_S", 0.05)

    async def main() -> None:
        async with serve(sessions(scripted("yes"))) as url:
            for text in (b"", HEAD, HEAD + b"Content-Length: 50\r\n\r\n{"):
                async with opened(url, text) as reader:
                    with contextlib.suppress(ConnectionResetError):
                        assert await asyncio.wait_for(reader.read(), 120) == b""

    run(main())


def test_a_client_that_does_not_take_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = asyncio.Event()

    class Noted(connection.Connection):
        def abort(self) -> None:
            super().abort()
            cut.set()

    monkeypatch.setattr(connection, "CLIENT_S", 0.05)
    monkeypatch.setattr(server, "Connection", Noted)
    name = "m" * 8_000_000
    chats = Conversations(ByteChat())
    session = EngineSession(scripted("yes"), chats, models=(name,), sampling=Sampling(), key="")

    async def main() -> int:
        text = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        async with serve(session) as url, opened(url, text) as reader:
            await asyncio.wait_for(cut.wait(), 120)
            with contextlib.suppress(ConnectionResetError):
                return len(await reader.read())
            return 0

    assert run(main()) < len(name)


def test_a_client_that_waits_for_an_answer_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CLIENT_S", 0.05)

    async def main() -> bytes:
        async with (
            serve(sessions(scripted("yes", latency_s=0.2))) as url,
            # The second waits in the buffer while the first is answered.
            opened(url, WHOLE + WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as reader,
        ):
            return await asyncio.wait_for(reader.read(), 120)

    assert run(main()).count(b" 200 ") == 2


def test_idle_connections_make_room_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "most_connections", lambda: 3)

    async def main() -> None:
        async with serve(sessions(scripted("yes"))) as url, contextlib.AsyncExitStack() as idle:
            for _ in range(6):
                await idle.enter_async_context(opened(url, b""))
            async with opened(url, WHOLE) as reader:
                assert b" 200 " in await asyncio.wait_for(reader.readline(), 120)

    run(main())


def test_running_answers_end_when_the_server_closes() -> None:
    async def main() -> bytes:
        asked = asyncio.Event()

        class Noted(Scripted):
            async def generate(self, request: Request) -> Any:
                asked.set()
                return await super().generate(request)

        engine = Noted(script=lambda _: ByteChat().write("yes"), latency_s=0.3)
        async with serve(sessions(engine)) as url:
            running = opened(url, WHOLE)
            reader = await running.__aenter__()
            await asked.wait()
        answer = await reader.read()
        await running.__aexit__(None, None, None)
        return answer

    assert b" 200 " in run(main())


def test_sampled_messages_are_kept_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "KEEP_BYTES", 100 * conversation.TOKEN_BYTES)
    monkeypatch.setattr(conversation, "SAMPLES", 3)
    chats, hi = Conversations(ByteChat()), Message(role="user", content="hi")

    def kept(text: str, history: Message = hi) -> bool:
        return chats.prompt([history, Message(role="assistant", content=text)], ()).count(END) == 1

    for text in ("a" * 60, "b" * 30, "c" * 30):
        chats.answer([hi], [*text.encode()], 0)
    assert [kept(text) for text in ("a" * 60, "b" * 30, "c" * 30)] == [False, True, True]
    for number in range(9):
        chats.answer([Message(role="user", content=str(number))], [*b"same", *[END] * number], 0)
    [samples] = [each for key, each in chats._sampled.items() if len(each) > 1]  # pyright: ignore[reportPrivateUsage]
    assert len(samples) == 3


def test_offsets_are_those_of_the_whole_text() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=64).build(["red green é日本"])
    for renderer, text in ((ByteChat(), "añ日本 b" * 20), (policy.renderer, "red é日本 green\n" * 30)):
        tokens = renderer.write(text)
        assert len(tokens) > 3 * WINDOW
        assert offsets(renderer, tokens) == [len(renderer.text(tokens[:place])) for place in range(len(tokens))]
    assert offsets(ByteChat(), []) == []


def test_a_stream_has_the_prompts_tokens_once() -> None:
    body = CHAT | {"stream": True, "return_token_ids": True}
    _, text = served(lambda url: post(url, body), sessions(scripted("one\ntwo\nthree")))
    assert text.count("prompt_token_ids") == 1
    assert text.count("data: ") > 4


def test_outcomes_have_the_bounds_of_requests() -> None:
    received: list[object] = []
    session = sessions(scripted("yes")).find("")
    assert session is not None

    class Reporting:
        def find(self, key: str) -> Session:
            del key
            assert session is not None
            return replace(session, report=received.append)

    def act(url: str) -> list[int]:
        bodies = b"[1]", b"x" * 2000, b"[" * 900, b'"\xff"', b"{"
        return [post(url, body, "/v1/outcome")[0] for body in bodies]

    assert served(act, Reporting(), body_bytes=1000) == [200, 413, 400, 400, 400]  # type: ignore[arg-type]
    assert received == [[1]]


def test_a_request_that_breaks_leaves_the_others_alone() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=256).build(["hello"])

    def answers(url: str, *, harm: bool) -> list[str]:
        found = [""] * 4

        def ask(place: int) -> None:
            _, text = post(url, COMPLETION | {"max_tokens": 30, "seed": place, "model": "m"}, "/v1/completions")
            found[place] = json.loads(text)["choices"][0]["text"]

        def trouble() -> None:
            for fields in ({"temperature": 1e-310}, {"prompt": [1.5] * 1000}, {"prompt": "x " * 10**4}, {"n": 10**9}):
                post(url, COMPLETION | {"model": "m"} | fields, "/v1/completions")

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(found))]
        threads += [threading.Thread(target=trouble) for _ in range(2 if harm else 0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    async def main(*, harm: bool) -> list[str]:
        engine = Local(slots=32, deterministic=True).build(policy)
        session = EngineSession(
            engine, Conversations(policy.renderer), models=("m",), sampling=Sampling(max_tokens=8), key=""
        )
        async with serve(session) as url:
            found = await asyncio.to_thread(answers, url, harm=harm)
        await engine.close()
        return found

    alone = run(main(harm=False))
    assert all(alone)
    assert run(main(harm=True)) == alone


def test_an_abandoned_answer_ends_within_a_pass() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).build(["hello"])

    async def main() -> tuple[int, int]:
        engine = Local(slots=4).build(policy)
        chats, left = Conversations(policy.renderer), 0
        session = EngineSession(engine, chats, models=("m",), sampling=Sampling(max_tokens=8), key="")

        async def receive() -> Any:
            nonlocal left
            if messages:
                return messages.pop()
            while engine.passes < 3:
                await asyncio.sleep(0)
            left = engine.passes
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        sent: list[Any] = []
        body = json.dumps({"model": "m", "prompt": [5, 6], "n": 4, "max_tokens": 400}).encode()
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
        path = "/v1/completions"
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        await make_app(session)(scope, receive, send)
        await asyncio.sleep(0.01)
        await engine.close()
        assert sent[0]["status"] == 499
        return left, engine.passes

    left, passes = run(main())
    assert passes <= left + 1


def test_a_client_that_leaves_within_its_body_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serve(sessions(Scripted(script=lambda _: InjectedFault.SILENCE))) as url:
            for text in (HEAD + b"Content-Length: 99\r\n\r\n{", WHOLE):
                async with opened(url, text):
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)

    run(main())
    assert not caplog.records
