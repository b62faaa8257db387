"""Appraisers: judges, comparisons and probes of grown trees."""

from bough.appraise.appraise import Appraiser, Columns, appraise_trees
from bough.appraise.ask import AskModels, Continuation, Masked, Scoring
from bough.appraise.checklist import Checklist
from bough.appraise.fact_gain import FactGain
from bough.appraise.hop_progress import HopProgress
from bough.appraise.judge import RubricJudge, step_critic
from bough.appraise.observation_probe import ObservationProbe
from bough.appraise.of_seat import OfSeat
from bough.appraise.path_critique import PathCritique
from bough.appraise.probe import AnswerProbe
from bough.appraise.round_robin import RoundRobin
from bough.appraise.state_progress import StateProgress
from bough.appraise.step_potential import StepPotential
from bough.appraise.task_judge import TaskJudge
from bough.appraise.tool_judge import ToolJudge
from bough.appraise.tournament import Tournament
from bough.appraise.verification import Verifications

__all__ = [
    "AnswerProbe",
    "Appraiser",
    "AskModels",
    "Checklist",
    "Columns",
    "Continuation",
    "FactGain",
    "HopProgress",
    "Masked",
    "ObservationProbe",
    "OfSeat",
    "PathCritique",
    "RoundRobin",
    "RubricJudge",
    "Scoring",
    "StateProgress",
    "StepPotential",
    "TaskJudge",
    "ToolJudge",
    "Tournament",
    "Verifications",
    "appraise_trees",
    "step_critic",
]
