"""Word problems of linear programs with two variables: the agent writes the model, an exact solver its verdict."""

from bough.worlds.linear_programs.env import LinearPrograms

__all__ = ["LinearPrograms"]
