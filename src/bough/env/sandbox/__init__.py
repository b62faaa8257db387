"""A sandbox for programs: bubblewrap, a filter of system calls, limits of memory, time, files and output."""

from bough.env.sandbox.result import Ending, SandboxError, SandboxResult
from bough.env.sandbox.sandbox import Sandbox

__all__ = ["Ending", "Sandbox", "SandboxError", "SandboxResult"]
