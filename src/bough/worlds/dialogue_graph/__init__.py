"""Conversational tree search: a dialogue graph whose edges are the moves of an agent."""

from bough.worlds.dialogue_graph.env import DialogueGraph

__all__ = ["DialogueGraph"]
