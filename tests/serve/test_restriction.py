"""Forced calls and formats of answers: enforced while an untrained model samples them."""

import asyncio
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from tests.serve.wire import httpx

from bough.engine import Completion, Engine, FinishReason, Local, Request, Sampling, grammar_matcher
from bough.engine.grammar_matcher import GrammarMatchers
from bough.grammar import Grammar
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.serve import Conversations, EngineSession
from bough.serve.app import make_app
from bough.serve.restriction import MOST_SCHEMAS

SAYS = [{"role": "user", "content": "buy two teas"}]
SCHEMA = {
    "type": "object",
    "properties": {"item": {"enum": ["tea", "rice"]}, "count": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["item"],
    "additionalProperties": False,
}
BUY, WAIT = ("buy", SCHEMA), ("wait", {"type": "object", "properties": {}})


@cache
def policy() -> Policy:
    texts = ["[buy(item='tea', count=2), wait()]", '{"item": "rice", "count": 3}']
    return Tiny(layers=1, width=16, heads=2, vocab_tokens=320, context_tokens=1024).build(texts * 3)


class Ignorant:
    """An engine without grammars."""

    policy_version, context_tokens = 0, 1024

    async def generate(self, request: Request) -> Completion:
        token = request.stop_tokens[0]
        return Completion(tokens=(token,), logprobs=None, entropies=None, finish=FinishReason.STOP, policy_version=0)


def answers(path: str, bodies: Sequence[Mapping[str, Any]], engine: Any = None) -> list[httpx.Response]:
    async def main() -> list[httpx.Response]:
        own: Engine = Local(slots=16).build(policy()) if engine is None else engine
        conversations = Conversations(policy().renderer)
        served = EngineSession(own, conversations, models=("tiny",), sampling=Sampling(max_tokens=200), key="")
        transport = httpx.ASGITransport(app=make_app(served), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await asyncio.gather(*(client.post(path, json={"model": "tiny", **body}) for body in bodies))

    return asyncio.run(main())


def chat_tools(*tools: tuple[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in tools]


def check_call(name: str, arguments: Mapping[str, Any]) -> None:
    assert name in ("buy", "wait")
    if name == "buy":
        assert arguments["item"] in ("tea", "rice")
        assert arguments.keys() <= {"item", "count"}
        assert 1 <= arguments.get("count", 1) <= 9


def test_a_required_call_is_one_that_a_tool_takes() -> None:
    body = {"messages": SAYS, "tools": chat_tools(BUY, WAIT), "tool_choice": "required"}
    seen = set[str]()
    for each in answers("/v1/chat/completions", [{**body, "seed": seed} for seed in range(8)]):
        choice = each.json()["choices"][0]
        if choice["finish_reason"] == "length":
            continue
        calls = choice["message"]["tool_calls"]
        for call in calls:
            check_call(call["function"]["name"], json.loads(call["function"]["arguments"]))
        seen.add(calls[0]["function"]["name"])
    assert seen == {"buy", "wait"}


def test_a_named_tool_alone_is_called_once() -> None:
    choice = {"type": "function", "function": {"name": "buy"}}
    body = {"messages": SAYS, "tools": chat_tools(BUY, WAIT), "tool_choice": choice, "parallel_tool_calls": False}
    for each in answers("/v1/chat/completions", [{**body, "seed": seed} for seed in range(6)]):
        found = each.json()["choices"][0]
        if found["finish_reason"] != "length":
            assert [call["function"]["name"] for call in found["message"]["tool_calls"]] == ["buy"]


def test_an_answer_in_a_schema() -> None:
    chat = {
        "messages": SAYS,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    }
    for each in answers("/v1/chat/completions", [{**chat, "seed": seed} for seed in range(6)]):
        check_call("buy", json.loads(each.json()["choices"][0]["message"]["content"]))
    text = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}
    (found,) = answers("/v1/responses", [{"input": "buy", "text": text}])
    check_call("buy", json.loads(found.json()["output"][0]["content"][0]["text"]))


def test_an_answer_in_a_schema_beside_tools_may_be_a_call() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    body = {"messages": SAYS, "response_format": form, "tools": chat_tools(WAIT)}
    reasons = set[str]()
    for each in answers("/v1/chat/completions", [{**body, "seed": seed} for seed in range(16)]):
        choice = each.json()["choices"][0]
        reasons.add(choice["finish_reason"])
        if choice["finish_reason"] == "tool_calls":
            assert {call["function"]["name"] for call in choice["message"]["tool_calls"]} == {"wait"}
        elif choice["finish_reason"] == "stop":
            check_call("buy", json.loads(choice["message"]["content"]))
    assert {"stop", "tool_calls"} <= reasons


def test_forced_calls_of_the_other_dialects() -> None:
    tool = {"name": "wait", "input_schema": WAIT[1]}
    message = {"messages": SAYS, "max_tokens": 200, "tools": [tool], "tool_choice": {"type": "any"}}
    (found,) = answers("/v1/messages", [message])
    assert found.json()["stop_reason"] == "tool_use"
    assert {block["name"] for block in found.json()["content"] if block["type"] == "tool_use"} == {"wait"}
    response = {"input": "wait", "tools": [{"type": "function", "name": "wait", "parameters": WAIT[1]}]}
    (found,) = answers("/v1/responses", [{**response, "tool_choice": {"type": "function", "name": "wait"}}])
    assert "wait" in [item.get("name") for item in found.json()["output"]]
    assert found.json()["tool_choice"] == {"type": "function", "name": "wait"}


@pytest.mark.parametrize(
    "body", [{"response_format": {"type": "json_object"}}, {"tools": chat_tools(BUY), "tool_choice": "required"}]
)
def test_an_engine_without_grammars_refuses(body: Mapping[str, Any]) -> None:
    (found,) = answers("/v1/chat/completions", [{"messages": SAYS, **body}], Ignorant())
    assert found.status_code == 400
    assert "the engine of this server does not enforce" in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": SAYS, "tools": chat_tools(BUY), "tool_choice": "required"}),
        ("chat/completions", {"messages": SAYS, "response_format": {"type": "json_object"}}),
        ("responses", {"input": "buy", "text": {"format": {"type": "json_object"}}}),
        (
            "messages",
            {
                "messages": SAYS,
                "max_tokens": 9,
                "tools": [{"name": "wait", "input_schema": WAIT[1]}],
                "tool_choice": {"type": "any"},
            },
        ),
    ],
)
def test_without_the_extra_a_forced_answer_is_refused_with_its_name(
    path: str, body: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    (found,) = answers(f"/v1/{path}", [body])
    assert found.status_code == 400
    assert "without llguidance" in found.json()["error"]["message"]
    assert "pip install 'bough-rl[grammar]'" in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
            "got a JSON schema that can't be read: Pointer '/nowhere' does not exist; need one that can; change",
        ),
        (
            {"type": "strng"},
            "got a JSON schema that can't be read: Invalid type: strng; need one that can; change that part of it",
        ),
        ({"$ref": "#"}, "got a schema or grammar that no text fits; need one that some text fits"),
    ],
)
def test_a_schema_that_can_not_be_enforced(schema: Mapping[str, Any], message: str) -> None:
    (found,) = answers("/v1/chat/completions", [formatted(schema)])
    assert found.status_code == 400
    assert message in found.json()["error"]["message"]


def formatted(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": SAYS, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


def test_other_clients_are_answered_while_a_schema_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, going, compiled = threading.Event(), threading.Event(), list[str]()
    compile_one = GrammarMatchers._compile  # pyright: ignore[reportPrivateUsage]

    def held(self: GrammarMatchers, *given: Any) -> Any:
        compiled.append(threading.current_thread().name)
        begun.set()
        assert going.wait(60)
        return compile_one(self, *given)

    monkeypatch.setattr(GrammarMatchers, "_compile", held)

    async def main() -> list[int]:
        engine = Local(slots=4).build(policy())
        served = EngineSession(
            engine, Conversations(policy().renderer), models=("tiny",), sampling=Sampling(max_tokens=4), key=""
        )
        transport = httpx.ASGITransport(app=make_app(served))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            def ask(body: Mapping[str, Any]) -> "asyncio.Task[httpx.Response]":
                return asyncio.create_task(client.post("/v1/chat/completions", json={"model": "tiny", **body}))

            waiting = [ask(formatted(SCHEMA)), ask(formatted(SCHEMA))]
            await asyncio.to_thread(begun.wait, 60)
            free = await ask({"messages": SAYS})
            assert not any(task.done() for task in waiting)
            going.set()
            return [free.status_code, *(each.status_code for each in await asyncio.gather(*waiting))]

    assert asyncio.run(main()) == [200, 200, 200]
    assert len(compiled) == 1, "equal schemas are compiled once"
    assert compiled[0].startswith("bough-grammar")


def test_schemas_that_are_too_large_are_refused() -> None:
    parts = [
        {"anyOf": [{"type": "object", "properties": {f"k{one}_{other}": {}}} for one in range(4)]} for other in range(5)
    ]
    wide = {"enum": ["x" * MOST_SCHEMAS]}
    tools = {"messages": SAYS, "tools": chat_tools(("buy", wide)), "tool_choice": "required"}
    combined, large, forced, free = answers(
        "/v1/chat/completions",
        [formatted({"allOf": parts}), formatted(wide), tools, {**tools, "tool_choice": "auto", "max_tokens": 1}],
    )
    assert [each.status_code for each in (combined, large, forced)] == [400, 400, 400]
    assert "too big" in combined.json()["error"]["message"]
    for each in (large, forced):
        assert "need at most 131,072: send smaller schemas" in each.json()["error"]["message"]
    assert "schemas of" not in free.text, "tools that are free may be large"


def test_compiled_grammars_are_kept_up_to_a_size_and_compiled_for_clients_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop = policy().renderer.stop_tokens
    engine = Local(slots=1).build(policy())
    matchers: GrammarMatchers = engine._grammars  # type: ignore[attr-defined]
    grammars = [Grammar.of_schema({"const": f"text {number}" + "x" * 100}) for number in range(5)]
    monkeypatch.setattr(grammar_matcher, "COMPILED_CHARACTERS", 2 * len(grammars[0].lark))
    going, compiled = threading.Event(), list[str]()
    compile_one = GrammarMatchers._compile  # pyright: ignore[reportPrivateUsage]

    def held(self: GrammarMatchers, key: Any, *given: Any) -> Any:
        assert going.wait(60)
        compiled.append(key[0].lark)
        return compile_one(self, key, *given)

    monkeypatch.setattr(GrammarMatchers, "_compile", held)

    async def main() -> None:
        first, left, *rest = (asyncio.create_task(matchers.compile(each, stop)) for each in grammars[:4])
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        comes = asyncio.create_task(matchers.compile(grammars[1], stop))
        await asyncio.sleep(0)
        going.set()
        await asyncio.gather(first, *rest, comes)
        going.clear()
        monkeypatch.setattr(grammar_matcher, "CLIENT_S", 0.01)
        with pytest.raises(ValueError, match="was not compiled after"):
            await matchers.compile(grammars[4], stop)
        going.set()

    asyncio.run(main())
    assert compiled[:4] == [grammars[place].lark for place in (0, 2, 3, 1)], "its client has left, and another comes"
    kept = [grammar for grammar, _ in matchers._compiled]  # pyright: ignore[reportPrivateUsage]
    assert kept == [grammars[3], grammars[1]]
