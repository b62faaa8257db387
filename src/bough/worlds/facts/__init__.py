"""Hidden facts: questions reveal the facts of a case, and a few of them decide its class."""

from bough.worlds.facts.env import HiddenFacts

__all__ = ["HiddenFacts"]
