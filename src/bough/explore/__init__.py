"""Explorers: the growth of trees, in training and at inference."""

from bough.explore.before_updates import BeforeUpdates
from bough.explore.budgeted_chains import BudgetedChains
from bough.explore.chains import Chains
from bough.explore.correct import Blame, Correct, FirstInvalid, FirstOracleMistake
from bough.explore.demonstration import Demonstration
from bough.explore.entropy_forks import EntropyForks
from bough.explore.ep_tree import EpTree
from bough.explore.forks import Forks
from bough.explore.full_tree import FullTree
from bough.explore.guided import Guided
from bough.explore.latr import Latr
from bough.explore.on_topic import OnTopic
from bough.explore.poor_action import FirstPoorAction
from bough.explore.program import Program
from bough.explore.quality import (
    CriticQuality,
    EarlyAnswerBonus,
    EqualScore,
    FormatScore,
    LlmJudge,
    OracleMatch,
    Quality,
)
from bough.explore.quality_sum import QualitySum, slate_judge
from bough.explore.roll_ins import RollIns
from bough.explore.segments import Segments
from bough.explore.slate import Slate
from bough.explore.subgoals import Subgoals
from bough.explore.world_model import WorldModel

__all__ = [
    "BeforeUpdates",
    "Blame",
    "BudgetedChains",
    "Chains",
    "Correct",
    "CriticQuality",
    "Demonstration",
    "EarlyAnswerBonus",
    "EntropyForks",
    "EpTree",
    "EqualScore",
    "FirstInvalid",
    "FirstOracleMistake",
    "FirstPoorAction",
    "Forks",
    "FormatScore",
    "FullTree",
    "Guided",
    "Latr",
    "LlmJudge",
    "OnTopic",
    "OracleMatch",
    "Program",
    "Quality",
    "QualitySum",
    "RollIns",
    "Segments",
    "Slate",
    "Subgoals",
    "WorldModel",
    "slate_judge",
]
