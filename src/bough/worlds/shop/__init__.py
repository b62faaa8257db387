"""A shop as text: buy each thing on a list once, one a turn."""

from bough.worlds.shop.env import Shop

__all__ = ["Shop"]
