"""Socratic debugging: an instructor leads a student to the bugs of its own program by questions."""

from bough.worlds.socratic.env import ScriptedStudent, Socratic

__all__ = ["ScriptedStudent", "Socratic"]
