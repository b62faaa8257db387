"""Schedules: numbers that vary with the progress of a run, in the place of a number among the settings."""

from bough.schedule.cosine_schedule import CosineSchedule
from bough.schedule.exponential_schedule import ExponentialSchedule
from bough.schedule.linear_schedule import LinearSchedule
from bough.varying import ValueSchedule

__all__ = ["CosineSchedule", "ExponentialSchedule", "LinearSchedule", "ValueSchedule"]
