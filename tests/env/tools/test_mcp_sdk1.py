"""MCP servers as tools, with version 1 of the SDK as the client; both versions run in `test_mcp.py` as the server."""

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.forks import Fork

TESTS = Path(__file__).with_name("test_mcp.py")
SDK1 = Path(sys.prefix) / "mcp1"
CHOSEN = "(listed_called and 2) or killed_server or (tools_over_http and 1)"
"""Each version of the SDK is the server once, and each transport is used."""


def run_with_version_1() -> None:
    sys.path.insert(0, str(SDK1))
    assert version("mcp").startswith("1.")
    sys.exit(pytest.main([str(TESTS), "-p", "no:cacheprovider", "-k", CHOSEN]))


def test_the_tests_of_servers_pass_with_version_1_as_the_client() -> None:
    with Fork(run_with_version_1) as run:
        done = run.wait()
    assert done.status == 0, done.out + done.err
    assert re.search(r"^3 passed", done.out.splitlines()[-1]), done.out
