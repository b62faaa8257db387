"""ScienceWorld: elementary science as a text game, in the original simulator (arXiv 2203.07540)."""

from bough.worlds.scienceworld.env import ScienceWorld

__all__ = ["ScienceWorld"]
