"""FrozenLake as text: cross a frozen grid to the goal without falling into a hole."""

from bough.worlds.frozenlake.env import FrozenLake

__all__ = ["FrozenLake"]
