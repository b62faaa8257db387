"""Tests that need a sandbox are skipped where the machine has none."""

import pytest

from bough.env.sandbox import Sandbox, SandboxError


def sandbox_problem() -> str:
    """Why this machine has no sandbox; "" when it has one."""
    try:
        Sandbox().check()
    except SandboxError as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")
