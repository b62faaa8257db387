"""Models that play the roles and seats of a run, and trained judges."""

from bough.roles.judge import TrainedJudge
from bough.roles.models import (
    CurrentPolicy,
    EarlierVersion,
    FrozenCheckpoint,
    FrozenModel,
    JudgeWeights,
    ModelSource,
    StartingWeights,
)
from bough.roles.recipes import EngineRecipe, PolicyRecipe
from bough.roles.seat_policy import FrozenPolicy, OwnPolicy, SeatPolicy

__all__ = [
    "CurrentPolicy",
    "EarlierVersion",
    "EngineRecipe",
    "FrozenCheckpoint",
    "FrozenModel",
    "FrozenPolicy",
    "JudgeWeights",
    "ModelSource",
    "OwnPolicy",
    "PolicyRecipe",
    "SeatPolicy",
    "StartingWeights",
    "TrainedJudge",
]
