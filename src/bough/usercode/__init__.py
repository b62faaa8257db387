"""A user's Python files: importing them, and the place of an exception in them."""

from bough.usercode.load import load_module

__all__ = ["load_module"]
