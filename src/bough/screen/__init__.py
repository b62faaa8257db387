"""Boxes and points on a screen: the records of environments with a screen, and their columns."""

from bough.screen.pointing import Box, Pointing, pointing_in
from bough.screen.pointings import POINTINGS, Pointings

__all__ = ["POINTINGS", "Box", "Pointing", "Pointings", "pointing_in"]
