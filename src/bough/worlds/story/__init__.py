"""Short stories, one plot step at a time."""

from bough.worlds.story.env import Story

__all__ = ["Story"]
