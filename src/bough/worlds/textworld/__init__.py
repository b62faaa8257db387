"""TextWorld: text games in the real engine, Inform 7 stories in the Frotz interpreter (arXiv:1806.11532)."""

from bough.worlds.textworld.env import TextWorld

__all__ = ["TextWorld"]
