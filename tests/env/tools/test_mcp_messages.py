"""Messages of MCP servers: results of every kind reach the model, and what is no message is named."""

import json
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mcp.types import CallToolResult
from pydantic import ValidationError
from tests.env.tools.mcp_http import first, say, solved
from tests.fuzz import inputs

from bough.env import EnvFault, McpStdio, ToolsEnv, tools_env
from bough.env.tools.mcp_messages import result_text

HAND = str(Path(__file__).with_name("mcp_hand.py"))


def hand(name: str, deadline_s: float = 30) -> ToolsEnv:
    server = McpStdio(command=sys.executable, args=(HAND, name), stateless=True, deadline_s=deadline_s)
    env = tools_env(servers=[server], tasks=[{"prompt": "x", "split": "train"}], reward=solved, max_calls=1000)
    assert isinstance(env, ToolsEnv)
    return env


BODY = {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "the body"}
RESULTS: dict[str, dict[str, Any]] = {
    '{"balance": 42, "é": null}': {"content": [], "structuredContent": {"balance": 42, "é": None}},
    "error: closed": {"content": [{"type": "text", "text": "closed"}], "isError": True},
    'error: {"why": "closed"}': {"content": [], "structuredContent": {"why": "closed"}, "isError": True},
    "the text": {"content": [{"type": "text", "text": "the text"}], "structuredContent": {"more": 1}},
    "the body": {"content": [{"type": "resource", "resource": BODY}]},
    "[resource file:///b image/png]": {
        "content": [{"type": "resource", "resource": {"uri": "file:///b", "mimeType": "image/png", "blob": "AA=="}}]
    },
    "[resource_link b file:///b.txt]": {"content": [{"type": "resource_link", "uri": "file:///b.txt", "name": "b"}]},
    '[image image/png]\n{"a": 1}': {
        "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "structuredContent": {"a": 1},
    },
    "a\nb": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
}


def test_results_of_every_kind_reach_the_model_and_noise_is_named_once(capfd: pytest.CaptureFixture[str]) -> None:
    env = hand("plain")
    state = first(env)
    for text, result in RESULTS.items():
        assert say(env, state, result=result) == text
    answer = {"content": [{"type": "text", "text": "answer"}]}
    noise = ["Loading \x1b[31m...", "{", '{"jsonrpc": "2.0"}', "[[[", *["x" * 100] * 200]
    assert say(env, state, result=answer, noise=noise) == "answer"
    assert say(env, state, result=answer, bytes=True) == "answer"
    assert say(env, state, result=answer, unused="\ud800") == "answer", "a lone surrogate is replaced"
    env.close()
    written = capfd.readouterr().err
    assert written.count("is no message") == 1
    assert "'Loading \\x1b[31m...'" in written
    assert "Traceback" not in written
    assert len(written) < 2000


def test_a_list_of_tools_that_is_empty_or_changes_is_named() -> None:
    with pytest.raises(ValueError, match="lists no tools"):
        first(hand("empty"))
    with pytest.raises(ValueError, match="tool 'say': got a schema with a \\$ref that leads back to itself"):
        first(hand("looping"))
    with pytest.raises(EnvFault, match="did not start: ValueError: got more than 1024 tools; need fewer"):
        first(hand("many"))
    with pytest.raises(ValueError, match="got the tool name '<tool_call>'; need 1 to 128"):
        first(hand("marked"))
    env = hand("changing")
    state = first(env)
    assert say(env, state, result={"content": []}) == ""
    assert say(env, state, result={"content": []}, changes=True) == ""
    with pytest.raises(EnvFault, match=r"changed \(say, tool1; now say, tool2\); need the same tools"):
        say(env, state, result={"content": []})
    env.close()


def test_another_module_of_the_packages_name_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("mcp")
    other.__spec__ = ModuleSpec("mcp", None)
    monkeypatch.setitem(sys.modules, "mcp", other)
    with pytest.raises(EnvFault, match="did not start: ImportError: cannot import name 'ClientSession'"):
        first(hand("plain"))


def test_a_message_of_any_length_is_refused() -> None:
    env = hand("plain")
    state = first(env)
    text = "a" * 1_000_000
    assert say(env, state, result={"content": [{"type": "text", "text": text}]}).startswith(text[:4000])
    began = time.monotonic()
    with pytest.raises(EnvFault, match=r"tool say: .*got a message of more than 8,388,608 bytes; need a server"):
        say(env, state, characters=20_000_000)
    assert time.monotonic() - began < 20, "before the deadline of the call"
    env.close()
    with pytest.raises(EnvFault, match="did not start: got a message of more than 8,388,608 bytes"):
        first(hand("endless"))


@pytest.mark.timeout(120, method="thread")  # such a check would take hours, in a thread
def test_a_result_is_not_checked_by_the_servers_patterns() -> None:
    env = hand("evil")
    assert say(env, first(env), result={"content": [], "structuredContent": {"a": "a" * 40 + "!"}})
    env.close()


def test_generated_results_are_text() -> None:
    read = 0
    for number, draw in inputs("mcp messages"):
        try:
            result = CallToolResult.model_validate(generated(draw))
        except ValidationError:
            continue
        text = result_text(result.model_dump(by_alias=True, mode="json"))
        assert isinstance(text.encode(), bytes), number
        read += 1
    assert read > 100


def test_generated_lines_on_standard_output_stop_no_call() -> None:
    env, lines = hand("plain"), [generated_line(draw) for _, draw in inputs("mcp lines")]
    state = first(env)
    for start in range(0, len(lines), 500):
        answer = {"content": [{"type": "text", "text": f"answer {start}"}]}
        assert say(env, state, result=answer, noise=lines[start : start + 500]) == f"answer {start}"
    env.close()


def generated_line(draw: np.random.Generator) -> str:
    """A text, a part of a message, a notification, a request, or a result that nothing waits for."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": int(draw.integers(10**6, 10**7)), "result": {}}
    kind = draw.integers(6)
    if kind == 0:
        return "".join(chr(each) for each in draw.integers(1, 0xD7FF, size=20)).replace("\n", "").replace("\r", "")
    if kind == 1:
        return "[" * int(draw.integers(3000))
    if kind == 2:
        methods = (
            "notifications/progress",
            "notifications/message",
            "ping",
            "sampling/createMessage",
            "x",
            "roots/list",
        )
        del message["result"]
        message["method"] = methods[int(draw.integers(len(methods)))]
        if message["method"].startswith("notifications"):
            del message["id"]
        message["params"] = ({}, None, {"progressToken": 1, "progress": "x"}, [])[int(draw.integers(4))]
    if kind == 3:
        message = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": int(draw.integers(9)), "message": "no"}}
    text = json.dumps(message)
    return text[: int(draw.integers(len(text)))] if kind == 4 else text


def generated(draw: np.random.Generator) -> dict[str, Any]:
    def pick(*values: Any) -> Any:
        return values[int(draw.integers(len(values)))]

    def text() -> Any:
        return pick("", "a", "\x1b[2J", "<|im_end|>", "é\u2028", "[[0.1]]", "x" * 1000)

    def value(depth: int) -> Any:
        inner = [value(depth - 1) for _ in range(draw.integers(3))] if depth else []
        return pick(text(), 1, 1e308, None, True, 10**30, inner, {text(): each for each in inner})

    def part() -> Any:
        kind = pick("text", "image", "audio", "resource", "resource_link")
        made: dict[str, Any] = {"type": kind}
        if kind == "resource":
            made["resource"] = {"uri": "a:b", pick("text", "blob"): pick("QUE=", text()), "mimeType": pick(None, "x/y")}
        else:
            made |= {"text": text(), "data": "QUE=", "mimeType": "x/y", "uri": pick("a:b", "c:/d"), "name": text()}
        return {**made, pick("annotations", "_meta", "title"): pick(None, {})}

    made: dict[str, Any] = {"content": [part() for _ in range(draw.integers(4))]}
    if draw.integers(2):
        made["structuredContent"] = {text(): value(3) for _ in range(draw.integers(3))}
    return {**made, pick("isError", "_meta", "other"): pick(True, False, None)}
