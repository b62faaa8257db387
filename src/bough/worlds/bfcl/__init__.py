"""BFCL multi-turn: function calls in eight stateful APIs, with scripted user turns and the package's own checks."""

from bough.worlds.bfcl.env import Bfcl

__all__ = ["Bfcl"]
