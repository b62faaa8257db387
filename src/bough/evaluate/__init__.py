"""Evaluation: how good a trained agent is, with honest intervals."""

from bough.evaluate.checkpoint import Evaluation, evaluate, sentence

__all__ = ["Evaluation", "evaluate", "sentence"]
