"""A tool that runs Python, for any environment of tools."""

from bough.env.sandbox import Ending, Sandbox
from bough.env.tools.function_tool import stateless

LONGEST = 2000
"""Longest output that a model reads, in characters."""

REASONS = {
    Ending.TIMEOUT: "error: the program took too long",
    Ending.MEMORY: "error: the program needs too much memory",
    Ending.OUTPUT: "error: the program wrote too much",
    Ending.KILLED: "error: the program crashed",
}


@stateless
def python(code: str) -> str:
    """Run a Python program and read its output. The value of a last expression is printed.

    Args:
        code: The program.
    """
    return run_python(code, Sandbox())


def run_python(code: str, sandbox: Sandbox) -> str:
    """Runs a program and returns its output for a model, cut to `LONGEST` characters.

    For a tool with other limits: `def python(code: str) -> str: return run_python(code, Sandbox(cpu_s=10))`.

    Args:
        code: The program; the value of a last expression is printed.
        sandbox: The limits.

    Raises:
        SandboxError: when the machine cannot run a sandbox.
    """
    result = sandbox.run(code, echo=True)
    reason = REASONS.get(result.ending, "")
    if result.ending is Ending.EXITED and result.status:
        reason = result.stderr.rstrip() or f"error: exit status {result.status}"
    shown = "\n".join(part for part in (_cut(result.stdout.rstrip()), _cut(reason)) if part)
    return shown or "no output"


def _cut(text: str) -> str:
    """The beginning and the end of a long text, with the number of characters left out."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n... {len(text) - LONGEST} characters left out ...\n{text[-half:]}"
