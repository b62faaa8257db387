"""The MCP server of the tests over HTTP."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

SERVER = str(Path(__file__).with_name("mcp_server.py"))


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
