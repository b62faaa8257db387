"""A quiz in text: many small questions in a row, each rewarded by itself."""

from bough.worlds.quiz.env import Quiz

__all__ = ["Quiz"]
