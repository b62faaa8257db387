"""MCP servers as tools, with version 1 of the SDK as the client; both versions run in `test_mcp.py` as the server."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).with_name("test_mcp.py")
CHOSEN = "listed_called or killed_server or tools_over_http"


def test_the_tests_of_servers_pass_with_version_1_as_the_client() -> None:
    sdk = Path(sys.prefix) / "mcp1"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(sdk), os.environ.get("PYTHONPATH", "")])}
    program = "from importlib.metadata import version; print(version('mcp'))"
    found = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
    assert found.startswith("1.")
    command = [sys.executable, "-m", "pytest", str(TESTS), "-p", "no:cacheprovider", "-k", CHOSEN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^6 passed", done.stdout.splitlines()[-1]), done.stdout
