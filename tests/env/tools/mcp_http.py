"""The MCP server of the tests over HTTP, and calls of a tool `say`."""

# ruff: noqa: ARG001

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bough.env import State, ToolsEnv
from bough.tree import Action, ToolCall

SERVER = str(Path(__file__).with_name("mcp_server.py"))


def solved(state: None, row: Mapping[str, Any], answer: str) -> bool:
    return True


def first(env: ToolsEnv) -> State:
    return env.start(env.tasks("train", 1, 0)[0])


def say(env: ToolsEnv, state: State, **arguments: Any) -> str:
    (message,) = env.step(state, Action(calls=(ToolCall(name="say", arguments=arguments),))).state.observation
    return message.content  # type: ignore[union-attr]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(port: int, path: str = "") -> subprocess.Popen[bytes]:
    """Start the server; `path` is the search path of its modules."""
    environment = {**os.environ, "PORT": str(port), "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, SERVER], env=environment, stderr=subprocess.DEVNULL)


def wait(port: int) -> None:
    """Wait until a server listens."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nothing listens")


def end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()
