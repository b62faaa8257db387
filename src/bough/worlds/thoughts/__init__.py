"""A graph of thoughts: a controller picks transformations, and a solver executes them."""

from bough.worlds.thoughts.env import ScriptedSolver, ThoughtGraph

__all__ = ["ScriptedSolver", "ThoughtGraph"]
