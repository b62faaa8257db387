"""Chat completions: each kind of request is answered, or refused by the name of the field."""

from typing import Any

import pytest
from tests.serve.dialects.table import CALL, ENGINE, OTHER, SCHEMA, Kind, LineChat, check, refused

PATH = "/v1/chat/completions"
SMALLEST = {"model": "tiny", "messages": [{"role": "user", "content": "SAY yes"}]}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def says(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [user("SAY " + "\n".join(texts))]} | fields


def called(*ids: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(name: str | None, content: Any = "SAY three") -> dict[str, Any]:
    return {"role": "tool", "content": content} | ({} if name is None else {"tool_call_id": name})


def after(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": [user("hi"), *messages], "tools": TOOLS} | fields


MESSAGE = "choices.0.message"
TEXT = f"{MESSAGE}.content"
END = "choices.0.finish_reason"
KINDS = (
    Kind(name="smallest", body={}, want={TEXT: "yes", END: "stop", "object": "chat.completion", "model": "tiny"}),
    Kind(name="another name", body={"model": "gpt-4o"}, want={"model": "gpt-4o"}),
    Kind(name="system", body={"messages": [{"role": "system", "content": "be"}, user("SAY a")]}, want={TEXT: "a"}),
    Kind(name="developer", body={"messages": [{"role": "developer", "content": "be"}, user("SAY a")]}),
    Kind(name="parts", body={"messages": [user([{"type": "text", "text": "SAY a"}])]}, want={TEXT: "a"}),
    Kind(name="name of an author", body={"messages": [user("SAY a") | {"name": "bob"}]}, want={TEXT: "a"}),
    Kind(name="n", body={"n": 2}, want={"choices.1.message.content": "yes", "choices.1.index": 1}),
    Kind(name="max_tokens", body={"max_tokens": 2}, want={TEXT: "ye", END: "length"}),
    Kind(name="max_completion_tokens", body={"max_completion_tokens": 1}, want={TEXT: "y", END: "length"}),
    Kind(name="stop", body={"stop": "s"}, want={TEXT: "ye", END: "stop"}),
    Kind(name="sampling", body={"temperature": 0.5, "top_p": 0.9, "seed": 3}, want={TEXT: "yes"}),
    Kind(name="logprobs", body={"logprobs": True, "top_logprobs": 2}, want={"choices.0.logprobs.content.0.token": "y"}),
    Kind(name="stream", body={"stream": True}, words=('"content": "yes"', '"finish_reason": "stop"', "[DONE]")),
    Kind(
        name="stream with usage",
        body={"stream": True, "stream_options": {"include_usage": True}},
        words=('"completion_tokens": 4',),
    ),
    Kind(name="token ids", body={"return_token_ids": True}, want={"choices.0.token_ids": [*b"yes", 256]}),
    Kind(
        name="a call",
        body=says(CALL, tools=TOOLS),
        want={END: "tool_calls", TEXT: None, f"{MESSAGE}.tool_calls.0.function.name": "add"},
    ),
    Kind(
        name="two calls",
        body=says(CALL, OTHER, tools=TOOLS),
        want={f"{MESSAGE}.tool_calls.1.function.arguments": '{"a": 2}'},
    ),
    Kind(name="a text and a call", body=says("I add.", CALL, tools=TOOLS), want={TEXT: "I add.", END: "tool_calls"}),
    Kind(name="no tools", body=says(CALL), want={TEXT: CALL, END: "stop"}),
    Kind(name="empty tools", body=says(CALL, tools=[]), want={TEXT: CALL}),
    Kind(name="choice none", body=says(CALL, tools=TOOLS, tool_choice="none"), want={TEXT: CALL, END: "stop"}),
    Kind(name="choice auto", body=says(CALL, tools=TOOLS, tool_choice="auto"), want={END: "tool_calls"}),
    Kind(name="a stream of a call", body=says(CALL, tools=TOOLS, stream=True), words=('"tool_calls": [{"index": 0',)),
    Kind(
        name="thinking",
        body=says("<think>", "um", "</think>", "a"),
        want={TEXT: "a", f"{MESSAGE}.reasoning_content": "um"},
    ),
    Kind(
        name="thinking that was cut",
        body=says("<think>um", max_tokens=9),
        want={TEXT: "", f"{MESSAGE}.reasoning_content": "um"},
    ),
    Kind(
        name="a stream of thinking",
        body=says("<think>um</think>a", stream=True),
        words=('{"reasoning_content": "um"}', '{"content": "a"}'),
    ),
    Kind(name="result", body=after(called("1"), result("1")), want={TEXT: "three"}),
    Kind(name="result in parts", body=after(called("1"), result("1", [{"type": "text", "text": "SAY b"}]))),
    Kind(name="results in another order", body=after(called("1", "2"), result("2", "b"), result("1")), want={}),
    Kind(name="refusal", body={"messages": [user("hi"), {"role": "assistant", "refusal": "no"}, user("SAY a")]}),
    Kind(
        name="reasoning of history",
        body={"messages": [user("a"), {"role": "assistant", "content": "b", "reasoning": "um"}, user("SAY a")]},
    ),
    Kind(
        name="nulls",
        body={
            **dict.fromkeys(("tools", "tool_choice", "stop", "n", "seed", "logprobs", "response_format", "functions")),
            **dict.fromkeys(("prediction", "audio", "web_search_options", "stream_options", "return_token_ids")),
        },
    ),
    Kind(
        name="fields without effect",
        body={
            "user": "u",
            "store": True,
            "metadata": {"a": "b"},
            "reasoning_effort": "low",
            "verbosity": "low",
            "prompt_cache_key": "k",
            "safety_identifier": "s",
            "service_tier": "auto",
            "modalities": ["text"],
            "parallel_tool_calls": True,
            "response_format": {"type": "text"},
            "presence_penalty": 0,
        },
    ),
    Kind(name="strict tool", body={"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}),
    Kind(
        name="nulls of a tool",
        body={"tools": [{"type": "function", "function": {"name": "f", "description": None, "parameters": None}}]},
    ),
    refused("no messages", {"messages": []}, "messages"),
    refused("no model", {"model": ...}, "model", "Field required"),
    refused("another model", {"model": "big"}, "'big'", "tiny", status=404),
    refused("required choice", {"tools": TOOLS, "tool_choice": "required"}, "tool_choice", "no grammar of calls"),
    refused("named choice", {"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice", "by its name"),
    Kind(name="json", body={"response_format": {"type": "json_object"}}),
    refused("no schema", {"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
    refused("image", {"messages": [user([{"type": "image_url", "image_url": {"url": "x"}}])]}, "messages.0.content.0"),
    refused("audio", {"modalities": ["text", "audio"]}, "modalities"),
    refused("penalty", {"frequency_penalty": 0.5}, "frequency_penalty"),
    refused("bias", {"logit_bias": {"1": 5}}, "logit_bias"),
    refused("functions", {"functions": [{"name": "f"}]}, "functions"),
    refused("prediction", {"prediction": {"type": "content"}}, "prediction"),
    refused("unknown result", after(called("1"), result("2")), "messages[2]: got a result of the call '2'", "['1']"),
    refused("second result", after(called("1"), result("1"), result("1")), "messages[3]: got a second result"),
    refused("result without an id", after(called("1"), result(None)), "messages[2].tool_call_id: got none"),
    refused("result of nothing", after(result("1")), "messages[1]: got a result of the call '1'"),
    refused("missing result", after(called("1", "2"), result("1")), "messages[1]: got no result of the call '2'"),
    refused("no result", after(called("1"), user("SAY a")), "messages[1]: got 0 results of 1 calls"),
    refused("top_logprobs alone", {"top_logprobs": 2}, "top_logprobs", "logprobs=true"),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_of_chat(kind: Kind) -> None:
    check(PATH, SMALLEST, kind)


def test_one_call_at_a_time_is_the_first_and_the_history_has_it_alone() -> None:
    first = check(PATH, SMALLEST, Kind(name="", body=says(CALL, OTHER, tools=TOOLS, parallel_tool_calls=False)))
    message = first["choices"][0]["message"]
    assert [each["function"]["arguments"] for each in message["tool_calls"]] == ['{"a": 1}']
    history = [user(f"SAY {CALL}\n{OTHER}"), message, result(message["tool_calls"][0]["id"])]
    check(PATH, SMALLEST, Kind(name="", body={"messages": history, "tools": TOOLS}, want={TEXT: "three"}))
    prompt = LineChat().text(ENGINE.requests[-1].prompt_tokens)
    assert prompt.count('{"a": 2}') == 1, "in the user's message alone"


def test_thinking_is_kept_whether_it_is_returned_or_not() -> None:
    asked = user("SAY <think>um</think>\n\nyes")
    message = check(PATH, SMALLEST, Kind(name="", body={"messages": [asked]}))["choices"][0]["message"]
    prompts = []
    for thinking in ({}, {"reasoning_content": "um"}, {"reasoning_content": "another"}):
        back = {"role": "assistant", "content": message["content"]} | thinking
        check(PATH, SMALLEST, Kind(name="", body={"messages": [asked, back, user("SAY a")]}))
        prompts.append(LineChat().text(ENGINE.requests[-1].prompt_tokens).removeprefix(asked["content"]))
    sampled = "<think>um</think>\n\nyesSAY a"
    assert prompts == [sampled, sampled, "<think>\nanother\n</think>\n\nyesSAY a"]
