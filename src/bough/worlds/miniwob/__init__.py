"""MiniWoB++: small tasks on web pages, played in a real Chromium (arXiv 1802.08802)."""

from bough.worlds.miniwob.env import MiniWob

__all__ = ["MiniWob"]
