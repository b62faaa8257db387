"""OpenSpiel's games: loading, positions, texts and perfect play."""

from bough.env.adapters.openspiel.game import GameTexts, load_game, pyspiel
from bough.env.adapters.openspiel.position import Position, apply, first_position, reach
from bough.env.adapters.openspiel.solve import Solution, solution, suggest_move

__all__ = [
    "GameTexts",
    "Position",
    "Solution",
    "apply",
    "first_position",
    "load_game",
    "pyspiel",
    "reach",
    "solution",
    "suggest_move",
]
