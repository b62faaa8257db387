"""ALFWorld: household tasks in text, with generated rooms or the official games (arXiv 2010.03768)."""

from bough.worlds.alfworld.env import AlfWorld
from bough.worlds.alfworld.original_alfworld import OriginalAlfWorld

__all__ = ["AlfWorld", "OriginalAlfWorld"]
