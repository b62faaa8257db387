"""Explorers: the growth of trees, in training and at inference."""

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
from bough.explore.program import Program
from bough.explore.quality import EarlyAnswerBonus, FormatScore, LlmJudge, OracleMatch, Quality
from bough.explore.segments import Segments
from bough.explore.slate import Slate
from bough.explore.world_model import Ask, DirectLlmCall, WorldModel

__all__ = [
    "OracleMatch",
    "DirectLlmCall",
    "Ask",
    "LlmJudge",
    "FirstInvalid",
    "FirstOracleMistake",
    "Blame",
    "Chains",
    "Correct",
    "Demonstration",
    "WorldModel",
    "EarlyAnswerBonus",
    "EntropyForks",
    "Forks",
    "Guided",
    "FullTree",
    "Latr",
    "OnTopic",
    "Program",
    "FormatScore",
    "Quality",
    "Segments",
    "Slate",
    "EpTree",
]
