"""Evaluation: how good a trained agent is, with honest intervals, acting at once or after a search."""

from bough.evaluate.checkpoint import Evaluation, evaluate, sentence
from bough.evaluate.failed import AllFailed
from bough.evaluate.search import Found, search, summary

__all__ = ["AllFailed", "Evaluation", "Found", "evaluate", "search", "sentence", "summary"]
