"""Checks of environments against their contract."""

from bough.evaluate.envs.check_env import CHECKS, check_env
from bough.evaluate.envs.report import EnvCheck, EnvReport, Mark
from bough.evaluate.envs.trial import CheckSizes

__all__ = ["CHECKS", "CheckSizes", "EnvCheck", "EnvReport", "Mark", "check_env"]
