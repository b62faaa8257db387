"""C++ of ours, as code for the machine that this runs on."""

from bough.machine.code import compiler, machine_code
from bough.machine.heads import Heads, code_for, heads, plain, pointers, room

__all__ = ["Heads", "code_for", "compiler", "heads", "machine_code", "plain", "pointers", "room"]
