"""A phone in text: apps, screens and elements with boxes, made from a seed."""

from bough.worlds.screens.env import Screens

__all__ = ["Screens"]
