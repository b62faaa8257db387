"""Generated requests get an answer, or one error of the API with a short message; never status 500."""

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from tests.fuzz import inputs
from tests.serve.wire import posted

from bough.engine import Request, Sampling, Scripted
from bough.policy import Tiny
from bough.serve import Conversations, EngineSession
from bough.serve.app import make_app

FRAGMENTS = (
    "",
    "hi",
    "é",
    "日本",
    "<|end|>",
    "<|user|>",
    "[[0.2]]",
    "[[#1]]",
    "{{7*7}}",
    "\x00",
    "\u2028",
    '{"name": 1',
    "null",
)
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**70, -(2**70), 0.5, 1e-310, 5e-324, 1e308, 1.5),
    *(float("nan"), float("inf"), "", "hi", "\ud800", "auto", "x" * 300, [], {}, [[]], [1, 2], ["a"], {"a": 1}),
)
SCHEMA = {"type": "object", "properties": {}}
RESULTS = [{"type": "input_text", "text": "3"}, {"type": "refusal", "refusal": "no"}]
CHAT, COMPLETIONS, RESPONSES, MESSAGES, COUNT = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
)
TEMPLATES: tuple[tuple[str, dict[str, Any]], ...] = (
    (CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}),
    (
        CHAT,
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "be"}]},
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": [1]}'}}],
                },
                {"role": "tool", "tool_call_id": "1", "content": "3"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
            "logprobs": True,
            "top_logprobs": 2,
            "n": 2,
        },
    ),
    (COMPLETIONS, {"prompt": "hi", "stop": ["a", "b"], "seed": 3, "temperature": 0.5, "top_p": 0.9}),
    (COMPLETIONS, {"prompt": [[1, 2], [3]], "logprobs": 1, "stop_token_ids": [4], "stream": True}),
    (RESPONSES, {"input": "hi", "instructions": "be", "max_output_tokens": 3, "store": True}),
    (
        RESPONSES,
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "id": "r", "summary": [], "content": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": [1]}'},
                {"type": "function_call_output", "call_id": "1", "output": RESULTS},
            ],
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
            "include": ["message.output_text.logprobs"],
            "top_logprobs": 2,
            "stream": True,
        },
    ),
    (MESSAGES, {"max_tokens": 3, "messages": [{"role": "user", "content": "hi"}], "stop_sequences": ["a"]}),
    (
        MESSAGES,
        {
            "max_tokens": 3,
            "system": [{"type": "text", "text": "be"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "", "signature": "x"},
                        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": [1]}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "3"}]},
            ],
            "tools": [{"name": "f", "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "stream": True,
        },
    ),
    (COUNT, {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f", "input_schema": SCHEMA}]}),
)
"""Requests with their paths."""


def test_generated_requests() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=256).build(["hi there {name}: 1"])
    answers = policy.renderer.write("hi there"), policy.renderer.write('{"name": "f", "arguments": {}}'), (5, 6, 7)

    def script(request: Request) -> tuple[int, ...]:
        return answers[request.seed % len(answers)]

    session = EngineSession(
        Scripted(script=script, context_tokens=256),
        Conversations(policy.renderer),
        models=(),
        sampling=Sampling(max_tokens=8),
        key="",
    )

    async def main() -> dict[int, int]:
        app, found = make_app(session, body_bytes=2**16), dict[int, int]()
        for number, random in inputs("requests"):
            path, body = _request(random)
            status, text = await posted(app, path, body)
            found[status] = found.get(status, 0) + 1
            assert status in (200, 400, 404, 413), (number, path, body, text)
            if status != 200:
                assert len(json.loads(text)["error"]["message"]) < 1000, (number, path, body, text)
        return found

    found = asyncio.run(main())
    assert min(found[200], found[400]) > sum(found.values()) // 20, found


def _request(random: np.random.Generator) -> tuple[str, bytes]:
    """A path and a body; one in ten is sent to the path of another."""
    path, template = TEMPLATES[random.integers(len(TEMPLATES))]
    if random.random() < 0.1:
        path = TEMPLATES[random.integers(len(TEMPLATES))][0]
    value: Any = json.loads(json.dumps(template | {"model": "m"}))
    for _ in range(random.integers(4)):
        _change(random, value)
    raw = json.dumps(value, ensure_ascii=bool(random.integers(2))).encode("utf-8", "surrogatepass")
    return path, _CUTS[random.integers(len(_CUTS))](random, raw)


def _change(random: np.random.Generator, value: Any) -> None:
    """Replace, repeat or drop a value somewhere."""
    while isinstance(value, dict | list) and value:
        key = list(value)[random.integers(len(value))] if isinstance(value, dict) else int(random.integers(len(value)))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and random.random() < 0.7:
            value = inner
            continue
        kind = random.integers(6)
        if kind == 0:
            del value[key]
        elif kind == 1:
            value[key] = [inner] * int(random.integers(300))
        elif kind == 2:
            value[key] = "".join(FRAGMENTS[place] for place in random.integers(len(FRAGMENTS), size=5))
        elif kind == 3 and isinstance(value, dict):
            value[FRAGMENTS[random.integers(len(FRAGMENTS))]] = inner
        else:
            value[key] = deepcopy(SCALARS[random.integers(len(SCALARS))])
        return


def _whole(random: np.random.Generator, raw: bytes) -> bytes:
    del random
    return raw


def _cut(random: np.random.Generator, raw: bytes) -> bytes:
    return raw[: random.integers(len(raw) + 1)]


def _flipped(random: np.random.Generator, raw: bytes) -> bytes:
    changed = bytearray(raw)
    changed[random.integers(len(raw))] = random.integers(256)
    return bytes(changed)


def _deep(random: np.random.Generator, raw: bytes) -> bytes:
    depth = int(random.integers(1, 5000))
    place = raw.find(b":") + 1
    return raw[:place] + b"[" * depth + b"]" * depth + raw[place:]


_CUTS: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (*[_whole] * 16, _cut, _flipped, _flipped, _deep)
