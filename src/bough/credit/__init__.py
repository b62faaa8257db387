"""Credit rules: from rewards to an advantage for each sampled token, in pure numpy."""

from bough.credit.archer import Archer
from bough.credit.arpo import Arpo
from bough.credit.aspo import Aspo
from bough.credit.asymre import AsymRe
from bough.credit.best_candidate import BestCandidate
from bough.credit.capo import Capo
from bough.credit.conservative import ConservativeBellman
from bough.credit.credit import Credit, compares_with, compute_credit
from bough.credit.damped_copies import DampedCopies
from bough.credit.egpo import Egpo
from bough.credit.empg import Empg
from bough.credit.filtered import Filtered
from bough.credit.flow_grpo import FlowGrpo
from bough.credit.foresight import Foresight
from bough.credit.fork_reward import ForkReward
from bough.credit.gae import Gae
from bough.credit.gigpo import Gigpo
from bough.credit.grpo import Grpo, dr_grpo, lite_ppo, loop, opo, rec, rloo
from bough.credit.hae import Hae
from bough.credit.hbpo import Hbpo
from bough.credit.hgpo import Hgpo
from bough.credit.igpo import Igpo
from bough.credit.implicit_q import ImplicitQ
from bough.credit.info_po import InfoPo
from bough.credit.ipa import Ipa
from bough.credit.istar import IStar
from bough.credit.kind_values import KindValues
from bough.credit.masked import MaskedSpans
from bough.credit.mixture import ConservativeMixture
from bough.credit.opmd import OpmdBaseline
from bough.credit.perplexity_band import PerplexityBand
from bough.credit.poad import Poad, ntpo
from bough.credit.process import Process
from bough.credit.prorag import ProRag
from bough.credit.q_learning import QLearning
from bough.credit.question_answer import QuestionAnswer
from bough.credit.reinforce_pp import ReinforcePlusPlus, reinforce_pp_baseline
from bough.credit.rest_mcts import RestMcts
from bough.credit.rlvmr import Rlvmr
from bough.credit.salt import Salt
from bough.credit.searched import Searched
from bough.credit.segment_po import SegmentPo
from bough.credit.single_stream import SingleStream
from bough.credit.slate import SlateCredit
from bough.credit.solver_and_judge import SolverAndJudge
from bough.credit.spae import Spae
from bough.credit.srgpo import Srgpo
from bough.credit.step_grpo import StepGrpo
from bough.credit.stepwise_grpo import StepwiseGrpo
from bough.credit.stratified import StratifiedGrpo
from bough.credit.target_size import TargetSize
from bough.credit.task_weight import TaskWeight
from bough.credit.tree_grpo import TreeGrpo
from bough.credit.tree_ps import TreePs
from bough.credit.tree_rpo import TreeRpo
from bough.credit.treepo import TreePo
from bough.credit.treerl import TreeRl
from bough.credit.turn_position import TurnPosition
from bough.credit.turn_ppo import TurnPpo
from bough.credit.useful_turns import UsefulTurns
from bough.credit.verified import Verified
from bough.credit.with_targets import WithTargets

__all__ = [
    "Archer",
    "Arpo",
    "Aspo",
    "AsymRe",
    "BestCandidate",
    "Capo",
    "ConservativeBellman",
    "ConservativeMixture",
    "Credit",
    "DampedCopies",
    "Egpo",
    "Empg",
    "Filtered",
    "FlowGrpo",
    "Foresight",
    "ForkReward",
    "Gae",
    "Gigpo",
    "Grpo",
    "Hae",
    "Hbpo",
    "Hgpo",
    "IStar",
    "Igpo",
    "ImplicitQ",
    "InfoPo",
    "Ipa",
    "KindValues",
    "MaskedSpans",
    "OpmdBaseline",
    "PerplexityBand",
    "Poad",
    "ProRag",
    "Process",
    "QLearning",
    "QuestionAnswer",
    "ReinforcePlusPlus",
    "RestMcts",
    "Rlvmr",
    "Salt",
    "Searched",
    "SegmentPo",
    "SingleStream",
    "SlateCredit",
    "SolverAndJudge",
    "Spae",
    "Srgpo",
    "StepGrpo",
    "StepwiseGrpo",
    "StratifiedGrpo",
    "TargetSize",
    "TaskWeight",
    "TreeGrpo",
    "TreePo",
    "TreePs",
    "TreeRl",
    "TreeRpo",
    "TurnPosition",
    "TurnPpo",
    "UsefulTurns",
    "Verified",
    "WithTargets",
    "compares_with",
    "compute_credit",
    "dr_grpo",
    "lite_ppo",
    "loop",
    "ntpo",
    "opo",
    "rec",
    "reinforce_pp_baseline",
    "rloo",
]
