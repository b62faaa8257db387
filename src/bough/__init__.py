"""Bough trains language-model agents by policy optimization over trajectory trees."""

__version__ = "0.1.0"
