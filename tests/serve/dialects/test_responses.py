"""Responses: each kind of request is answered, or refused by the name of the field; OpenAI's client reads streams."""

import asyncio
import json
from itertools import chain
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from tests.serve.dialects.table import (
    APP,
    CALL,
    ENGINE,
    OTHER,
    SCHEMA,
    Kind,
    LineChat,
    check,
    check_all,
    refused,
    wrong_values,
)
from tests.serve.wire import httpx

from bough.serve.dialects.responses import stored
from bough.serve.dialects.responses.stored import StoredResponses
from bough.tree import Message

PATH = "/v1/responses"
SMALLEST = {"model": "tiny", "input": "SAY yes"}
TOOLS: Any = [{"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA, "strict": True}]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def says(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"input": "SAY " + "\n".join(texts)} | fields


def call(name: str, arguments: str = '{"a": 1}') -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "add", "arguments": arguments}


def result(name: str, output: Any = "SAY three") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": output}


def after(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"input": [user("hi"), *items], "tools": TOOLS} | fields


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
ANSWER = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}],
}
TEXT = "output.0.content.0.text"
LOGPROBS = "message.output_text.logprobs"
KINDS = (
    Kind(
        name="text",
        body={},
        want={"object": "response", "status": "completed", "model": "tiny", TEXT: "yes", "output.0.role": "assistant"},
    ),
    Kind(
        name="usage", body={}, want={"usage.output_tokens": 4, "usage.output_tokens_details": {"reasoning_tokens": 0}}
    ),
    Kind(name="items", body={"input": [user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="typed items", body={"input": [{"type": "message"} | user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="parts", body={"input": [user([{"type": "input_text", "text": "SAY a"}])]}, want={TEXT: "a"}),
    Kind(name="instructions", body={"instructions": "be"}, want={TEXT: "yes", "instructions": "be"}),
    Kind(name="system", body={"input": [{"role": "system", "content": "be"}, user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="developer", body={"input": [{"role": "developer", "content": "be"}, user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="an answer", body={"input": [user("hi"), ANSWER, user("SAY a")]}, want={TEXT: "a"}),
    Kind(
        name="a short answer",
        body={"input": [user("hi"), {"role": "assistant", "content": "b"}, user("SAY a")]},
        want={TEXT: "a"},
    ),
    Kind(
        name="a refusal",
        body={"input": [user("hi"), ANSWER | {"content": [{"type": "refusal", "refusal": "no"}]}, user("SAY a")]},
    ),
    Kind(name="reasoning", body={"input": [user("hi"), REASONING, ANSWER, user("SAY a")]}, want={TEXT: "a"}),
    Kind(
        name="reasoning with its text",
        body={"input": [REASONING | {"content": [{"type": "reasoning_text", "text": "um"}]}, ANSWER, user("SAY a")]},
    ),
    Kind(name="sampling", body={"temperature": 0.5, "top_p": 0.9}, want={TEXT: "yes", "temperature": 0.5}),
    Kind(
        name="max_output_tokens",
        body={"max_output_tokens": 2},
        want={TEXT: "ye", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ),
    Kind(
        name="logprobs",
        body={"include": [LOGPROBS], "top_logprobs": 2},
        want={"output.0.content.0.logprobs.0.token": "y"},
    ),
    Kind(
        name="a call",
        body=says(CALL, tools=TOOLS),
        want={"output.0.type": "function_call", "output.0.name": "add", "output.0.arguments": '{"a": 1}'},
    ),
    Kind(name="two calls", body=says(CALL, OTHER, tools=TOOLS), want={"output.1.arguments": '{"a": 2}'}),
    Kind(
        name="a text and a call",
        body=says("I add.", CALL, tools=TOOLS),
        want={TEXT: "I add.", "output.1.type": "function_call"},
    ),
    Kind(name="no tools", body=says(CALL), want={TEXT: CALL}),
    Kind(name="choice none", body=says(CALL, tools=TOOLS, tool_choice="none"), want={TEXT: CALL}),
    Kind(name="choice auto", body=says(CALL, tools=TOOLS, tool_choice="auto"), want={"output.0.name": "add"}),
    Kind(
        name="one call",
        body=says(CALL, OTHER, tools=TOOLS, parallel_tool_calls=False),
        want={"output.0.arguments": '{"a": 1}', "parallel_tool_calls": False},
    ),
    Kind(
        name="thinking",
        body=says("<think>um</think>a"),
        want={
            "output.0.type": "reasoning",
            "output.0.content.0.text": "um",
            "output.1.content.0.text": "a",
            "usage.output_tokens_details.reasoning_tokens": len("<think>um</think>"),
        },
    ),
    Kind(name="result", body=after(call("1"), result("1")), want={TEXT: "three"}),
    Kind(name="result in parts", body=after(call("1"), result("1", [{"type": "input_text", "text": "SAY b"}]))),
    Kind(
        name="results in another order",
        body=after(call("1"), call("2"), result("2"), result("1")),
        want={TEXT: "three"},
    ),
    Kind(name="calls one by one", body=after(call("1"), result("1"), call("2"), result("2")), want={TEXT: "three"}),
    Kind(name="reasoning before a call", body=after(REASONING, call("1"), result("1")), want={TEXT: "three"}),
    Kind(name="nulls", body=dict.fromkeys(("tools", "instructions", "include", "text", "reasoning", "conversation"))),
    Kind(
        name="fields without effect",
        body={
            "user": "u",
            "store": True,
            "metadata": {"a": "b"},
            "service_tier": "auto",
            "prompt_cache_key": "k",
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"verbosity": "low"},
            "max_tool_calls": 3,
            "truncation": "disabled",
            "background": False,
            "include": ["reasoning.encrypted_content"],
            "safety_identifier": "s",
            "prompt_cache_retention": "24h",
            "stream_options": {},
            "top_logprobs": 0,
        },
        want={TEXT: "yes", "metadata": {"a": "b"}},
    ),
    refused("no input", {"input": ...}, "input", "Field required"),
    refused("empty input", {"input": []}, "input"),
    refused("another model", {"model": "big"}, "'big'", status=404),
    refused("required choice", {"tools": TOOLS, "tool_choice": "required"}, "tool_choice", "no grammar of calls"),
    refused("named choice", {"tools": TOOLS, "tool_choice": {"type": "function", "name": "add"}}, "tool_choice"),
    refused("a hosted tool", {"tools": [{"type": "web_search"}]}, "tools.0.type", "'web_search'"),
    Kind(name="json", body={"text": {"format": {"type": "json_object"}}}, want={"text.format.type": "json_object"}),
    Kind(
        name="a schema",
        body={"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
        want={"text.format.name": "x", "text.format.schema": {}},
    ),
    refused("no schema", {"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format", "without a schema"),
    refused("image", {"input": [user([{"type": "input_image", "image_url": "x"}])]}, "input.0", "input_image"),
    refused("another item", {"input": [{"type": "computer_call"}]}, "input.0", "computer_call"),
    refused("a reference", {"input": [{"type": "item_reference", "id": "x"}]}, "input.0", "item_reference"),
    refused("truncation", {"truncation": "auto"}, "truncation"),
    refused("background", {"background": True}, "background"),
    refused("conversation", {"conversation": "conv_1"}, "conversation"),
    refused("prompt", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    refused("other includes", {"include": ["file_search_call.results"]}, "include.0"),
    refused("top_logprobs alone", {"top_logprobs": 2}, "top_logprobs", "include"),
    refused("unknown result", after(call("1"), result("2")), "input[2]: got a result of the call '2'", "['1']"),
    refused("missing result", after(call("1"), call("2"), result("1")), "input[1]: got no result of the call '2'"),
    refused("no result", after(call("1"), user("SAY a")), "input[1]: got no result of the call '1'"),
    refused("result without an id", after(call("1"), {"type": "function_call_output", "output": "x"}), "call_id"),
    refused("arguments", after(call("1", "{"), result("1")), "input[1].arguments: got arguments that are no JSON"),
    refused("unknown response", {"previous_response_id": "resp_1"}, "previous_response_id: got 'resp_1'", status=404),
    refused("a field of another dialect", {"max_tokens": 3}, "max_tokens"),
    refused("no item", {"input": [5]}, "input.0: got no type; need one of 'message', 'function_call'"),
    refused("another type", {"input": [{"type": "custom_tool_call"}]}, "input.0: got the type 'custom_tool_call'"),
    refused("another role", {"input": [{"role": "tool", "content": "a"}]}, "input.0.role"),
    refused("field of an item", {"input": [user("a") | {"x": 1}]}, "input.0.x: got a field", "leave it out"),
    refused("field of a part", {"input": [user([{"type": "input_text", "text": "a", "x": 1}])]}, "input.0.content.0.x"),
    refused("namespace", after(call("1") | {"namespace": "x"}, result("1")), "input.1.namespace"),
    refused("field of a tool", {"tools": [TOOLS[0] | {"output_schema": {}}]}, "tools.0.output_schema"),
    refused("deferred tool", {"tools": [TOOLS[0] | {"defer_loading": True}]}, "tools.0.defer_loading"),
    refused("name of a tool", {"tools": [TOOLS[0] | {"name": "a\nb"}]}, "tools.0.name"),
    refused("allowed tools", {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice"),
    refused("another format", {"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    refused("field of the text", {"text": {"x": 1}}, "text.x"),
    refused("second result", after(call("1"), result("1"), result("1")), "input[3]: got a second result of the call"),
    refused("result of nothing", after(result("1")), "input[1]: got a result of the call '1'"),
    refused("too long", {"input": "x" * 5000}, "maximum context length", "4096"),
    Kind(
        name="nested fields without effect",
        body={
            "input": [
                user([{"type": "input_text", "text": "SAY a", "prompt_cache_breakpoint": None}]) | {"phase": "x"}
            ],
            "tools": [TOOLS[0] | {"defer_loading": False, "allowed_callers": None}],
        },
        want={TEXT: "a"},
    ),
    *wrong_values(
        {
            "max_output_tokens": (True, 0, "9"),
            "temperature": (True, 3),
            "top_p": (True, 0),
            "top_logprobs": (True, 21),
            "background": (1,),
            "stream": (1, "true"),
            "store": (0,),
            "input": (None, 5, {}),
            "model": ("", None),
            "image": ({},),
        }
    ),
)


def test_each_kind_of_response_is_answered_or_refused_by_name() -> None:
    check_all(PATH, SMALLEST, KINDS)


def ids(value: Any) -> Any:
    """The value without ids and times."""
    if isinstance(value, list):
        return [ids(each) for each in value]
    if isinstance(value, dict):
        gone = ("id", "call_id", "item_id", "created_at", "completed_at")
        return {name: ids(each) for name, each in value.items() if name not in gone}
    return value


TEXT_EVENTS = ["content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done"]
CALL_EVENTS = ["function_call_arguments.delta", "function_call_arguments.done"]
REASONING_EVENTS = ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"]


def test_the_events_of_a_stream_are_those_of_the_whole_in_their_order() -> None:
    body: dict[str, Any] = {"input": f"SAY <think>um</think>one\ntwo\n{CALL}", "tools": TOOLS, "include": [LOGPROBS]}
    whole = check(PATH, SMALLEST, Kind(name="", body=body))
    text = check(PATH, SMALLEST, Kind(name="", body=body | {"stream": True}))
    named = [each.split("\n") for each in text.strip().split("\n\n")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in named]
    assert [name.removeprefix("event: ") for name, _ in named] == [each["type"] for each in events]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    items = (["output_item.added", *each, "output_item.done"] for each in (REASONING_EVENTS, TEXT_EVENTS, CALL_EVENTS))
    names = ["created", "in_progress", *chain.from_iterable(items), "completed"]
    assert [each["type"].removeprefix("response.") for each in events] == names
    assert (events[0]["response"]["status"], events[0]["response"]["output"]) == ("in_progress", [])
    assert ids(events[-1]["response"]) == ids(whole)
    assert [each["item"] for each in events if each["type"].endswith("item.done")] == events[-1]["response"]["output"]


def test_openais_client_reads_whole_and_streamed_responses() -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(app=APP)
        async with httpx.AsyncClient(transport=transport) as http:
            used = AsyncOpenAI(base_url="http://test/v1", api_key="x", http_client=http, max_retries=0)
            asked = f"SAY <think>um</think>one\ntwo\n{CALL}"
            whole = await used.responses.create(model="tiny", input=asked, tools=TOOLS)
            assert whole.output_text == "one\ntwo"
            async with used.responses.stream(model="tiny", input=asked, tools=TOOLS) as stream:
                deltas = [each.delta async for each in stream if each.type == "response.output_text.delta"]
                final = await stream.get_final_response()
            assert deltas == ["one\n", "two"]
            assert [each.type for each in final.output] == ["reasoning", "message", "function_call"]
            # The output goes back as it is.
            back: Any = [each.to_dict() for each in whole.output]
            items: Any = [user(asked), *back, result(back[-1]["call_id"])]
            second = await used.responses.create(model="tiny", input=items, tools=TOOLS)
            assert second.output_text == "three"
            with pytest.raises(openai.BadRequestError) as caught:
                await used.responses.create(model="tiny", input="x", truncation="auto")
            assert caught.value.param == "truncation"

    before = len(ENGINE.requests)
    asyncio.run(main())
    first, _, second = (each.prompt_tokens for each in ENGINE.requests[before:])
    sampled = LineChat().write(f"<think>um</think>one\ntwo\n{CALL}")
    assert second[: len(first) + len(sampled)] == (*first, *sampled), "spliced in as sampled"


def test_a_response_goes_on_after_an_earlier_one() -> None:
    def create(**body: Any) -> dict[str, Any]:
        return check(PATH, SMALLEST, Kind(name="", body=body))

    first = create(input=f"SAY {CALL}\n{OTHER}", tools=TOOLS, instructions="be one")
    names = [each["call_id"] for each in first["output"]]
    second = create(input=[result(names[1]), result(names[0], "SAY b")], tools=TOOLS, previous_response_id=first["id"])
    assert second["output"][0]["content"][0]["text"] == "three", "results in the order of the calls"
    prompt = LineChat().text(ENGINE.requests[-1].prompt_tokens)
    assert "be one" not in prompt, "instructions are those of one request"
    assert prompt == f"addSAY {CALL}\n{OTHER}{CALL}\n{OTHER}SAY bSAY three"
    wrong = {"input": [result("x")], "previous_response_id": first["id"]}
    check(PATH, SMALLEST, refused("", wrong, "input[0]: got a result of the call 'x'"))
    alone = {"input": "hi", "previous_response_id": first["id"]}
    check(PATH, SMALLEST, refused("", alone, f"previous_response_id: got no result of the call {names[0]!r}"))
    unkept = create(store=False)
    check(PATH, SMALLEST, refused("", {"previous_response_id": unkept["id"]}, "previous_response_id", status=404))


def test_responses_are_kept_up_to_a_number_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "KEEP_RESPONSES", 2)
    kept = StoredResponses()
    for name in ("a", "b"):
        kept.keep(name, [Message(role="user", content=name)])
    assert kept.find("a") == (Message(role="user", content="a"),)
    kept.keep("c", [])
    assert [kept.find(each) is not None for each in "abc"] == [True, False, True]
    monkeypatch.setattr(stored, "KEEP_CHARACTERS", 500)
    kept.keep("d", [Message(role="user", content="x" * 290)])
    assert [kept.find(each) is not None for each in "acd"] == [False, True, True]
    kept.keep("e", [Message(role="user", content="x" * 500)])
    assert [kept.find(each) is not None for each in "cde"] == [False, False, False]
