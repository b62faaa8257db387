"""A user's Python files: imports them, and finds the position of an exception in them."""

from bough.usercode.load import load_module

__all__ = ["load_module"]
