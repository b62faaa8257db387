"""The tasks of reasoning-gym: one question, one answer, its own scorer (arXiv 2505.24760)."""

from bough.worlds.reasoning.env import ReasoningGym

__all__ = ["ReasoningGym"]
