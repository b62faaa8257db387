"""Messages: each kind of request is answered, or refused by the name of the field; Anthropic's client reads streams."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from tests.serve.dialects.table import (
    APP,
    CALL,
    ENGINE,
    OTHER,
    SCHEMA,
    SERVED,
    Kind,
    LineChat,
    check,
    check_all,
    post,
    refused,
    wrong_values,
)
from tests.serve.wire import httpx, scripted, sessions

from bough.engine import InjectedFault, Scripted
from bough.serve.app import make_app

PATH = "/v1/messages"
COUNT = f"{PATH}/count_tokens"
SMALLEST = {"model": "tiny", "max_tokens": 100, "messages": [{"role": "user", "content": "SAY yes"}]}
TOOLS: Any = [{"name": "add", "description": "Add.", "input_schema": SCHEMA}]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def says(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [user("SAY " + "\n".join(texts))]} | fields


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "add", "input": {"a": 1}}


def result(name: str, content: Any = "SAY three", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content} | fields


def after(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": [user("hi"), *messages], "tools": TOOLS} | fields


def choice(kind: str, **fields: Any) -> dict[str, Any]:
    return {"tools": TOOLS, "tool_choice": {"type": kind} | fields}


THOUGHT = {"type": "thinking", "thinking": "um", "signature": "x"}
TEXT, END = "content.0.text", "stop_reason"
KINDS = (
    Kind(
        name="text",
        body={},
        want={
            "type": "message",
            "role": "assistant",
            "model": "tiny",
            TEXT: "yes",
            END: "end_turn",
        },
    ),
    Kind(name="usage", body={}, want={"usage.input_tokens": 10, "usage.output_tokens": 4}),
    Kind(name="another name", body={"model": "gpt-4o"}, want={"model": "gpt-4o"}),
    Kind(name="blocks", body={"messages": [user([text("SAY a")])]}, want={TEXT: "a"}),
    Kind(name="system", body={"system": "be"}, want={TEXT: "yes"}),
    Kind(name="system in blocks", body={"system": [text("be") | {"cache_control": {"type": "ephemeral"}}]}),
    Kind(name="system message", body={"messages": [user("hi"), {"role": "system", "content": "be"}, user("SAY a")]}),
    Kind(name="turns", body={"messages": [user("hi"), assistant(text("b")), user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="a user twice", body={"messages": [user("hi"), user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="sampling", body={"temperature": 0.5, "top_p": 0.9}, want={TEXT: "yes"}),
    Kind(name="max_tokens", body={"max_tokens": 2}, want={TEXT: "ye", END: "max_tokens"}),
    Kind(
        name="stop", body={"stop_sequences": ["x", "s"]}, want={TEXT: "ye", END: "stop_sequence", "stop_sequence": "s"}
    ),
    Kind(
        name="a call",
        body=says(CALL, tools=TOOLS),
        want={"content.0.type": "tool_use", "content.0.name": "add", "content.0.input": {"a": 1}, END: "tool_use"},
    ),
    Kind(name="two calls", body=says(CALL, OTHER, tools=TOOLS), want={"content.1.input": {"a": 2}}),
    Kind(name="a text and a call", body=says("I", CALL, tools=TOOLS), want={TEXT: "I", "content.1.name": "add"}),
    Kind(name="a typed tool", body=says(CALL, tools=[TOOLS[0] | {"type": "custom"}]), want={END: "tool_use"}),
    Kind(name="no tools", body=says(CALL), want={TEXT: CALL, END: "end_turn"}),
    Kind(name="choice none", body=says(CALL) | choice("none"), want={TEXT: CALL, END: "end_turn"}),
    Kind(name="choice auto", body=says(CALL) | choice("auto"), want={END: "tool_use"}),
    Kind(
        name="one call",
        body=says("I", CALL, OTHER) | choice("auto", disable_parallel_tool_use=True),
        want={"content.1.input": {"a": 1}, END: "tool_use"},
    ),
    Kind(
        name="thinking",
        body=says("<think>um</think>a"),
        want={"content.0.type": "thinking", "content.0.thinking": "um", "content.1.text": "a"},
    ),
    Kind(name="thinking of history", body={"messages": [user("hi"), assistant(THOUGHT, text("b")), user("SAY a")]}),
    Kind(name="result", body=after(assistant(call("1")), user([result("1")])), want={TEXT: "three"}),
    Kind(
        name="result in blocks",
        body=after(assistant(call("1")), user([result("1", [text("SAY a")])])),
        want={TEXT: "a"},
    ),
    Kind(name="result of an error", body=after(assistant(call("1")), user([result("1", is_error=True)]))),
    Kind(name="result without content", body=after(assistant(call("1")), user([result("1", None), text("SAY a")]))),
    Kind(
        name="result and text", body=after(assistant(call("1")), user([result("1"), text("SAY a")])), want={TEXT: "a"}
    ),
    Kind(
        name="results in another order",
        body=after(assistant(call("1"), call("2")), user([result("2", "b"), result("1")])),
    ),
    Kind(
        name="text and thinking before a call",
        body=after(assistant(THOUGHT, text("b"), call("1")), user([result("1")])),
    ),
    Kind(name="nulls", body=dict.fromkeys(("system", "tools", "tool_choice", "top_k", "container", "stop_sequences"))),
    Kind(
        name="fields without effect",
        body={
            "metadata": {"user_id": "u"},
            "service_tier": "auto",
            "inference_geo": "us",
            "speed": "standard",
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "cache_control": {"type": "ephemeral"},
            "output_config": {"effort": "low"},
            "mcp_servers": [],
        },
        want={TEXT: "yes"},
    ),
    Kind(
        name="stream", body={"stream": True}, words=("event: message_start\n", "event: ping\n", "event: message_stop\n")
    ),
    refused("no max_tokens", {"max_tokens": ...}, "max_tokens", "Field required"),
    refused("no messages", {"messages": []}, "messages"),
    refused("another model", {"model": "big"}, "'big'", "tiny", status=404),
    refused("any choice", choice("any"), "tool_choice", "no grammar of calls"),
    refused("named choice", choice("tool", name="other"), "a call of 'other'", "need it in tools"),
    refused("a server's tool", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0"),
    refused("a schema", {"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
    refused("temperature", {"temperature": 1.5}, "temperature", "1.5"),
    refused("top_k", {"top_k": 5}, "top_k"),
    refused("speed", {"speed": "fast"}, "speed"),
    refused("servers", {"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
    refused("context edits", {"context_management": {"edits": []}}, "context_management"),
    refused("container", {"container": "c"}, "container"),
    refused("image", {"messages": [user([{"type": "image", "source": {}}])]}, "messages.0.content.0", "'image'"),
    refused(
        "document", {"messages": [user([{"type": "document", "source": {}}])]}, "messages.0.content.0", "'document'"
    ),
    refused(
        "hidden thinking", after(assistant({"type": "redacted_thinking", "data": "x"}), user("a")), "redacted_thinking"
    ),
    refused("an answer to go on with", {"messages": [user("hi"), assistant(text("b"))]}, "messages.1", "prefill"),
    refused("a call of the user", {"messages": [user([call("1")])]}, "messages.0.content.0: got a block tool_use"),
    refused("a result of the assistant", after(assistant(result("1")), user("a")), "messages.1.content.0: got a block"),
    refused(
        "unknown result", after(assistant(call("1")), user([result("2")])), "messages.2: got a result of the call '2'"
    ),
    refused("result without an id", after(assistant(call("1")), user([{"type": "tool_result"}])), "tool_use_id"),
    refused("missing result", after(assistant(call("1"), call("2")), user([result("1")])), "messages.1: got no result"),
    refused("no result", after(assistant(call("1")), user("SAY a")), "messages.1: got no result of the call '1'"),
    refused(
        "text before a result",
        after(assistant(call("1")), user([text("a"), result("1")])),
        "messages.1: got no result of",
    ),
    refused("too long", {"messages": [user("x" * 5000)]}, "prompt is too long", "4096"),
    refused("a field of another dialect", {"max_completion_tokens": 3}, "max_completion_tokens"),
    refused("no role", {"messages": [{"content": "a"}]}, "messages.0.role"),
    refused("another role", {"messages": [{"role": "tool", "content": "a"}]}, "messages.0.role"),
    refused("no block", {"messages": [user([5])]}, "messages.0.content.0: got no type; need one of 'text', 'thinking'"),
    refused("block without a text", {"messages": [user([{"type": "text"}])]}, "messages.0.content.0.text: Field"),
    refused(
        "searched result",
        {"messages": [user([{"type": "search_result"}])]},
        "messages.0.content.0: got the type 'search_result'; need one of",
    ),
    refused("field of a block", {"messages": [user([text("a") | {"x": 1}])]}, "messages.0.content.0.x: got a field"),
    refused("field of a message", {"messages": [user("a") | {"x": 1}]}, "messages.0.x: got a field", "leave it out"),
    refused("field of a result", after(assistant(call("1")), user([result("1", x=1)])), "messages.2.content.0.x"),
    refused("toolset", after(assistant(call("1") | {"toolset_name": "x"}), user([result("1")])), "toolset_name"),
    refused("field of a choice", choice("auto", x=1), "tool_choice.x"),
    refused("another choice", choice("maybe"), "tool_choice.type"),
    refused("field of a tool", {"tools": [TOOLS[0] | {"input_examples": [{"a": 1}]}]}, "tools.0.input_examples"),
    refused("deferred tool", {"tools": [TOOLS[0] | {"defer_loading": True}]}, "tools.0.defer_loading"),
    refused("tool without a schema", {"tools": [{"name": "add"}]}, "tools.0.input_schema: Field required"),
    refused("name of a tool", {"tools": [TOOLS[0] | {"name": "<|x|>"}]}, "tools.0.name"),
    refused("output settings", {"output_config": {"effort": "low", "task_budget": 3}}, "output_config.task_budget"),
    Kind(
        name="nested fields without effect",
        body=after(
            assistant(text("b") | {"citations": [], "cache_control": None}, call("1") | {"caller": {"type": "direct"}}),
            user([result("1", is_error=False, cache_control={"type": "ephemeral"})]),
            tools=[TOOLS[0] | {"strict": True, "eager_input_streaming": True, "defer_loading": False, "x": None}],
        ),
        want={TEXT: "three"},
    ),
    *wrong_values(
        {
            "max_tokens": (True, 0, "9", 1.5),
            "temperature": (True, -1, "0"),
            "top_p": (True, 0, 2),
            "top_k": (True, False, 0.5),
            "stream": (1, "true"),
            "stop_sequences": ([""], "x", [1], ["x"] * 17),
            "system": (5, [{"type": "image"}]),
            "model": ("", 5),
            "messages": (None, "hi", {}),
        }
    ),
)


def test_each_kind_of_message_is_answered_or_refused_by_name() -> None:
    for found in check_all(PATH, SMALLEST, KINDS).values():
        if isinstance(found, dict) and "error" in found:
            assert found["type"] == "error"
            assert found["error"].keys() == {"type", "message"}


def test_tokens_are_counted() -> None:
    counted = [({}, 10), ({"system": "be"}, 14), ({"tools": TOOLS}, 15), (choice("none"), 10)]
    before = len(ENGINE.requests)
    kinds = [Kind(name=str(body), body=body, want={"input_tokens": tokens}) for body, tokens in counted]
    check_all(COUNT, {**SMALLEST, "max_tokens": ...}, kinds)
    assert len(ENGINE.requests) == before
    check_all(PATH, SMALLEST, [replace(kind, want={"usage.input_tokens": kind.want["input_tokens"]}) for kind in kinds])


def test_the_events_of_a_stream_are_those_of_the_whole_in_their_order() -> None:
    body = says("<think>um</think>one\ntwo", CALL, tools=TOOLS)
    whole = check(PATH, SMALLEST, Kind(name="", body=body))
    told = check(PATH, SMALLEST, Kind(name="", body=body | {"stream": True})).strip().split("\n\n")
    events = [json.loads(each.partition("\ndata: ")[2]) for each in told]
    assert [each.partition("\n")[0].removeprefix("event: ") for each in told] == [each["type"] for each in events]
    blocks = [
        (each.get("index"), each.get("delta", {}).get("type"))
        for each in events
        if each["type"].startswith("content_block")
    ]
    assert blocks == [
        *((0, None), (0, "thinking_delta"), (0, "signature_delta"), (0, None)),
        *((1, None), (1, "text_delta"), (1, "text_delta"), (1, None)),
        *((2, None), (2, "input_json_delta"), (2, None)),
    ]
    assert [each["type"] for each in (*events[:2], *events[-2:])] == [
        "message_start",
        "ping",
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[-2]["usage"] == whole["usage"]


def test_anthropics_client_reads_whole_and_streamed_messages() -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(app=APP)
        async with httpx.AsyncClient(transport=transport) as http:
            used = AsyncAnthropic(base_url="http://test", api_key="x", http_client=http, max_retries=0)
            asked: Any = [user(f"SAY <think>um</think>one\ntwo\n{CALL}")]
            fields: Any = {"model": "tiny", "max_tokens": 100, "tools": TOOLS}
            whole = await used.messages.create(messages=asked, **fields)
            async with used.messages.stream(messages=asked, **fields) as stream:
                texts = [each async for each in stream.text_stream]
                final = await stream.get_final_message()
            assert texts == ["one\n", "two"]
            assert [each.type for each in final.content] == ["thinking", "text", "tool_use"]
            assert [each.text for each in final.content if each.type == "text"] == ["one\ntwo"]
            assert [each for each in final.content if each.type != "text"] == [whole.content[0], whole.content[2]]
            assert (final.stop_reason, final.usage.output_tokens) == ("tool_use", whole.usage.output_tokens)
            # The content goes back as it is.
            back: Any = [*asked, {"role": "assistant", "content": whole.content}, user([result(whole.content[-1].id)])]
            second = await used.messages.create(messages=back, **fields)
            assert second.content[0].text == "three"  # type: ignore[union-attr]
            counted = await used.messages.count_tokens(model="tiny", messages=back, tools=TOOLS)
            assert counted.input_tokens == second.usage.input_tokens
            assert [each.id async for each in used.models.list()] == ["tiny", "gpt-4o"]
            assert (await used.models.retrieve("tiny")).display_name == "tiny"
            with pytest.raises(anthropic.BadRequestError, match="speed"):
                await used.messages.create(messages=asked, speed="fast", **fields)
            # By these details the tool runner of the client goes on without a thread.
            with pytest.raises(anthropic.BadRequestError) as thread:
                await used.messages.create(messages=asked, extra_body={"thread": {"type": "create"}}, **fields)
            assert thread.value.body["error"]["details"]["error_code"] == "thread_unsupported_request"  # type: ignore[index]
            with pytest.raises(anthropic.NotFoundError, match="'big'"):
                await used.models.retrieve("big")

    before = len(ENGINE.requests)
    asyncio.run(main())
    first, _, second = (each.prompt_tokens for each in ENGINE.requests[before:])
    sampled = LineChat().write(f"<think>um</think>one\ntwo\n{CALL}")
    assert second[: len(first) + len(sampled)] == (*first, *sampled), "spliced in as sampled"


def test_a_key_is_that_of_either_header_and_errors_have_the_shape_of_the_dialect() -> None:
    async def main() -> None:
        for key, engine, status, kind in (
            ("right", scripted("yes"), 200, "message"),
            ("wrong", scripted("yes"), 401, "authentication_error"),
            ("right", Scripted(script=lambda _: InjectedFault.FAULT), 503, "overloaded_error"),
        ):
            transport = httpx.ASGITransport(app=make_app(sessions(engine, "right")), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
                for headers in ({"x-api-key": key}, {"authorization": f"Bearer {key}", "x-api-key": "old"}):
                    answer = await http.post(PATH, json=SMALLEST, headers=headers)
                    assert answer.status_code == status
                    found = answer.json()
                    assert found.get("error", found)["type"] == kind
                unknown = await http.get(f"{PATH}/batches", headers={"x-api-key": key})
                assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "not_found_error")

    asyncio.run(main())


def test_reasoning_is_refused_where_the_template_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineChat, "prompt_thinking", None)
    asked = user("SAY <think>um</think>a")
    body = {"messages": [asked, assistant(THOUGHT, text("b")), user("SAY a")]}
    check(PATH, SMALLEST, refused("", body, "thinking block", "has none"))
    check(PATH, SMALLEST, Kind(name="", body={"messages": [asked]}, want={TEXT: "<think>um</think>a"}))
    assert SERVED.find("") is not None
    assert post(PATH, SMALLEST).status_code == 200
