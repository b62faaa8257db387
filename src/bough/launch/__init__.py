"""Processes of a run: where they start, on this machine or on a cluster, and the channel to each."""

from bough.launch.interface import interface_to
from bough.launch.placement import Launched, Launcher, LaunchError, Placement, ThisMachine
from bough.launch.ray_cluster import Ray
from bough.launch.torchrun import Torchrun

__all__ = ["LaunchError", "Launched", "Launcher", "Placement", "Ray", "ThisMachine", "Torchrun", "interface_to"]
