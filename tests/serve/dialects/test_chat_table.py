"""Chat completions: each kind of request is answered, or refused by the name of the field."""

from typing import Any

from tests.serve.dialects.table import (
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

PATH = "/v1/chat/completions"
SMALLEST = {"model": "tiny", "messages": [{"role": "user", "content": "SAY yes"}]}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def says(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [user("SAY " + "\n".join(texts))]} | fields


def part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def called(*ids: str, arguments: str = '{"a": 1}', **fields: Any) -> dict[str, Any]:
    function = {"name": "add", "arguments": arguments, "parsed_arguments": {"a": 1}}
    calls = [{"id": each, "type": "function", "function": function} | fields for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool_of(schema: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}


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
    refused("no result", after(called("1"), user("SAY a")), "messages[1]: got no result of the call '1'"),
    refused("top_logprobs alone", {"top_logprobs": 2}, "top_logprobs", "logprobs=true"),
    Kind(name="roles anywhere", body={"messages": [user("a"), {"role": "system", "content": "be"}, user("SAY a")]}),
    Kind(name="several parts", body={"messages": [user([part("SAY a"), part("b")])]}, want={TEXT: "a\nb"}),
    Kind(name="input parts", body={"messages": [user([part("SAY a") | {"type": "input_text"}])]}, want={TEXT: "a"}),
    Kind(
        name="a refusal in parts",
        body={"messages": [user("a"), {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]},
    ),
    Kind(
        name="dumped messages",
        body=after(
            called("1") | {"annotations": [], "audio": None, "function_call": None, "refusal": None, "parsed": None},
            result("1") | {"name": "add"},
        ),
        want={TEXT: "three"},
    ),
    Kind(name="dumped calls", body=after(called("1", index=0), result("1")), want={TEXT: "three"}),
    Kind(name="no arguments", body=after(called("1", arguments=""), result("1")), want={TEXT: "three"}),
    Kind(name="several stops", body={"stop": ["x", "s"]}, want={TEXT: "ye"}),
    Kind(name="n in a stream", body={"n": 2, "stream": True}, words=('"index": 1',)),
    Kind(name="logprobs in a stream", body={"logprobs": True, "stream": True}, words=('"token": "y"',)),
    Kind(name="stream options", body={"stream": True, "stream_options": {"include_obfuscation": False}}),
    Kind(name="both limits", body={"max_tokens": 3, "max_completion_tokens": 1}, want={TEXT: "y"}),
    Kind(name="greedy", body={"temperature": 0, "top_p": 1, "seed": -1}, want={TEXT: "yes"}),
    Kind(name="choice none without tools", body={"tool_choice": "none"}, want={TEXT: "yes"}),
    Kind(name="choice auto without tools", body={"tool_choice": "auto"}, want={TEXT: "yes"}),
    Kind(name="parallel calls without tools", body={"parallel_tool_calls": False}, want={TEXT: "yes"}),
    Kind(name="cached tool", body={"tools": [TOOLS[0] | {"cache_control": {"type": "ephemeral"}}]}, want={TEXT: "yes"}),
    Kind(
        name="neutral values",
        body={
            "frequency_penalty": 0.0,
            "logit_bias": {},
            "top_k": -1,
            "min_p": 0,
            "repetition_penalty": 1.0,
            "min_tokens": 0,
            "top_logprobs": 0,
            "prompt_cache_retention": "24h",
            "moderation": {},
        },
    ),
    refused("required without tools", {"tool_choice": "required"}, "tool_choice", "the tools []", "need it in tools"),
    refused(
        "unknown named choice",
        {"tool_choice": {"type": "function", "function": {"name": "x"}}, "tools": TOOLS},
        "got a call of 'x'",
    ),
    refused("properties", tool_of({"properties": "auto"}), "tools.0.function.parameters", "that are no schemas"),
    refused("a property", tool_of({"properties": {"a": 1}}), "properties that are no schemas"),
    refused("required properties", tool_of({"required": "a"}), "required that is no list"),
    refused("too long", {"messages": [user("x" * 5000)]}, "maximum context length", "4096"),
    refused(
        "function_call of history",
        {"messages": [user("a"), {"role": "assistant", "function_call": {"name": "f"}}]},
        "messages.1.function_call",
    ),
    refused("another role", {"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role", "robot"),
    refused("no grammar", {"response_format": {"type": "grammar"}}, "response_format.type"),
    refused("allowed tools", {"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice: got {'type'"),
    refused("custom tool", {"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
    refused("custom call", after(called("1", type="custom"), result("1")), "messages.1.tool_calls.0.type"),
    refused("arguments", after(called("1", arguments="[1]"), result("1")), "messages[1].tool_calls[0]: got arguments"),
    refused("function role", {"messages": [{"role": "function", "content": "x"}]}, "messages.0.role"),
    refused("audio part", {"messages": [user([{"type": "input_audio"}])]}, "messages.0.content.0: got the type 'input"),
    refused("file", {"messages": [user([{"type": "file"}])]}, "messages.0.content.0: got the type 'file'; need one of"),
    refused("field of a message", {"messages": [user("a") | {"prefix": True}]}, "messages.0.prefix: got a field"),
    refused("field of a part", {"messages": [user([part("a") | {"x": 1}])]}, "messages.0.content.0.x: got a field"),
    refused("field of a call", after(called("1", x=1), result("1")), "messages.1.tool_calls.0.x"),
    refused("field of a tool", {"tools": [TOOLS[0] | {"x": 1}]}, "tools.0.x: got a field"),
    refused("stream's usage", {"stream_options": {"continuous_usage_stats": True}}, "continuous_usage_stats"),
    *wrong_values(
        {
            "n": (True, 0, 129),
            "max_tokens": (True, 0, "9", 1.5),
            "max_completion_tokens": (True,),
            "seed": (True, 2**70),
            "temperature": (True, 3, "0"),
            "top_p": (True, 0),
            "top_logprobs": (True, 21),
            "top_k": (False, 5),
            "frequency_penalty": (False, 1),
            "stream": (1, "true"),
            "stop": ("", [""], 5, ["x"] * 17),
            "messages": (None, "hi", [5], [{}]),
            "model": ("", None),
            "web_search_options": ({},),
            "audio": ({},),
            "function_call": ("auto",),
            "guided_json": ({},),
        }
    ),
)


def test_each_kind_of_chat_is_answered_or_refused_by_name() -> None:
    check_all(PATH, SMALLEST, KINDS)


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
