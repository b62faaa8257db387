"""Sokoban as text: push every box onto a target."""

from bough.worlds.sokoban.env import Sokoban

__all__ = ["Sokoban"]
