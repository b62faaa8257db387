"""OpenSpiel's games: loading, positions, texts and perfect play."""

from bough.env.spiel.game import GameTexts, load_game, pyspiel
from bough.env.spiel.position import Position, apply, first_position, reach
from bough.env.spiel.solve import Solution, solution, suggest_move

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
