"""MCP over HTTP with a server that answers wrongly: a right answer or one fault, before the deadline."""

# ruff: noqa: ARG005

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.env.tools.mcp_http import first, say, solved

from bough.env import EnvFault, McpHttp, ToolsEnv, tools_env

TOOLS = {"tools": [{"name": "say", "description": "says", "inputSchema": {"type": "object"}}]}
FINE = {"content": [{"type": "text", "text": "fine"}]}
MIB = b"x" * 2**20


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None: ...


class Hand(BaseHTTPRequestHandler):
    """A server of MCP by hand; the argument `answer` of its tool names the answer of the call."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        params = request.get("params") or {}
        results = {
            "initialize": {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hand", "version": "1"},
            },
            "tools/list": TOOLS,
            "tools/call": FINE,
        }
        message = {"jsonrpc": "2.0", "id": request.get("id"), "result": results.get(request["method"], {})}
        name = (params.get("arguments") or {}).get("answer", "")
        if "id" not in request:
            self.send(b"", status=202)
        elif name:
            try:
                ANSWERS[name](self, message)
            except OSError:  # the client has enough
                self.close_connection = True
        else:
            self.send(json.dumps(message).encode())

    def do_GET(self) -> None:
        self.send(b"", status=405)

    def send(self, body: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *parts: bytes, kind: str = "text/event-stream", pause_s: float = 0.0) -> None:
        """Send parts without a length, then end the connection."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        for part in parts:
            self.wfile.write(part)
            time.sleep(pause_s)

    def event(self, text: bytes) -> bytes:
        return b"event: message\ndata: " + text + b"\n\n"

    def log_message(self, *_: object) -> None: ...


def body(message: Mapping[str, Any], **other: Any) -> bytes:
    return json.dumps({**message, **other}).encode()


def long(message: Mapping[str, Any], size: int = 9 * 2**20) -> bytes:
    return body(message, result={"content": [{"type": "text", "text": "x" * size}]})


ANSWERS: dict[str, Callable[[Hand, Mapping[str, Any]], None]] = {
    "page": lambda server, message: server.send(b"<html>", "text/html"),
    "no type": lambda server, message: server.send(body(message), ""),
    "redirect": lambda server, message: server.send(b"", status=307, Location="http://127.0.0.1:9/mcp"),
    "loop": lambda server, message: server.send(b"", status=307, Location="/mcp"),
    "status": lambda server, message: server.send(b"no", "text/plain", 500),
    "no JSON": lambda server, message: server.send(b"\xff{["),
    "array": lambda server, message: server.send(b"[" + body(message) + b"]"),
    "deep": lambda server, message: server.send(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "no result": lambda server, message: server.send(body(message, result={"content": 5})),
    "kind": lambda server, message: server.send(body(message, result={"content": [{"type": "hologram"}]})),
    "another id": lambda server, message: server.send(body(message, id=999)),
    "endless": lambda server, message: server.stream(*[MIB] * 4000, kind="application/json"),
    "endless page": lambda server, message: server.stream(*[MIB] * 4000, kind="text/html"),
    "endless event": lambda server, message: server.stream(b"data: ", *[MIB] * 4000),
    "endless events": lambda server, message: server.stream(
        *[server.event(b'{"jsonrpc": "2.0", "method": "notifications/other"}')] * 1_000_000
    ),
    "no messages": lambda server, message: server.stream(*[server.event(b"{")] * 1000, server.event(body(message))),
    "slow": lambda server, message: server.stream(*[b" "] * 20, kind="application/json", pause_s=0.2),
    "slow events": lambda server, message: server.stream(*[b":\n"] * 20, pause_s=0.2),
    "long": lambda server, message: server.send(long(message)),
    "long event": lambda server, message: server.stream(server.event(long(message))),
    "compressed": lambda server, message: server.send(gzip.compress(long(message), 1), Content_Encoding="gzip"),
    "compressed event": lambda server, message: server.send(
        gzip.compress(server.event(long(message)), 1), "text/event-stream", Content_Encoding="gzip"
    ),
    "cut": lambda server, message: server.stream(body(message)[:20], kind="application/json"),
    "cut event": lambda server, message: server.stream(b"data: " + body(message)[:20]),
    "no events": lambda server, message: server.stream(),
    "nothing": lambda server, message: server.connection.shutdown(2),
    "two": lambda server, message: server.stream(*[server.event(body(message))] * 2),
    "event": lambda server, message: server.stream(b": x\n\n", server.event(body(message))),
}
RIGHT = {"two", "event"}
LATE = {"another id", "endless events", "slow", "slow events"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Hand) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_right_or_a_fault(name: str, address: str, capfd: pytest.CaptureFixture[str]) -> None:
    server = McpHttp(url=address, stateless=True, deadline_s=0.5 if name in LATE else 60.0)
    env = tools_env(servers=[server], tasks=[{"prompt": "x", "split": "train"}], reward=solved)
    assert isinstance(env, ToolsEnv)
    state, began = first(env), time.monotonic()
    if name in RIGHT:
        assert say(env, state, answer=name) == "fine"
    else:
        with pytest.raises(EnvFault, match=r"^MCP server http\S+, tool say: (.+)$") as fault:
            say(env, state, answer=name)
        assert ("no result within 0.5 s" in str(fault.value)) == (name in LATE), fault.value
    assert time.monotonic() - began < 30
    env.close()
    assert "Traceback" not in capfd.readouterr().err
