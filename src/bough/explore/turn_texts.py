"""Turns as texts, for prompts."""

from collections.abc import Sequence

from bough.context import Turn
from bough.tree import action_text, plain_text


def turn_texts(past: Sequence[Turn]) -> list[tuple[str, str]]:
    """The turns as pairs of observation and action, both as text."""
    return [(plain_text(turn.observation), action_text(turn.action)) for turn in past]
