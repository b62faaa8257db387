"""Checks of environments against their contract."""

from bough.evaluate.envs.check_env import NAMES, check_env
from bough.evaluate.envs.report import ChecksFailed, EnvCheck, EnvReport, Mark
from bough.evaluate.envs.trial import CheckSizes

__all__ = ["NAMES", "CheckSizes", "ChecksFailed", "EnvCheck", "EnvReport", "Mark", "check_env"]
