"""Tree search: one loop over five choices, which are select, expand, evaluate, back up and prune.

The package is also a function, `bough.search(run, "mcts()")`: see `bough.api`.
"""

from bough.lazy import make_callable
from bough.search.a_star import Bounded, TurnsToGo
from bough.search.agent_swift import EachKind, GuidedDescend, UncertainUct
from bough.search.aries import Aries, SampleCount
from bough.search.backup import AdvantageBackup, MaxBackup, MeanBackup, NegamaxBackup, SoftmaxBackup, SumBackup
from bough.search.best_of import BestOf
from bough.search.board_games import PayoffValue
from bough.search.code_tree import ProgramCritic, PruneRegressions
from bough.search.combine import Agreement, EnvReturn, ExecuteAndEvaluate, Mix
from bough.search.commit import Commit
from bough.search.commit_to_executed import CommitToExecuted
from bough.search.critic_rating import CriticRating
from bough.search.critic_turns import CriticTurns
from bough.search.curiosity import Curiosity
from bough.search.descend import Descend
from bough.search.draw_open import DrawOpen, UntilEnds
from bough.search.embedded import Cosine, Embedded
from bough.search.ets import RougeL, Similarity, Sparse
from bough.search.evaluate import ConstantValue, CriticValue, OracleValue, RolloutValue
from bough.search.expand import Admissible, Sample
from bough.search.finish_path_first import FinishPathFirst
from bough.search.frontier import Best, DepthFirst, Level, UnionOf
from bough.search.hints import FixedHint, Hints, KindHint, Siblings
from bough.search.hybrid import Hybrid
from bough.search.ideas import Ideas
from bough.search.imagine import Imagine, WebDreamer
from bough.search.introspect import Introspect
from bough.search.judge import Confidence, Judge, JudgeAction
from bough.search.judge_path import JudgePath
from bough.search.kinds import SampleKinds
from bough.search.log_ratio import LogRatio, PathRating
from bough.search.node import SearchNode
from bough.search.pieces import Backup, Evaluate, Expand, Hint, Proposal, Prune, Rate, Score, Select
from bough.search.plan_memory import PlanMemory
from bough.search.prune import BackJump, BeamWidth, DedupeSimilar, DedupeStates, LimitRepeats, PruneBelow
from bough.search.q_star import Likely
from bough.search.rank import Pairwise, Ranked
from bough.search.rebase import RebaseAllocation
from bough.search.reex_sql import ForkAfterValid
from bough.search.reflect import Critique, Reflections
from bough.search.rethink import Rethink
from bough.search.reward_value import RewardModelRating, RewardModelValue
from bough.search.rules import ActionKind, FewestMatches, ShortestState
from bough.search.score import AStarCost, Likelihood, NodeValue, Puct, QValue, RatedValue, Uct, VisitCount
from bough.search.search import Search
from bough.search.shared_states import KnownActions, ShareStates
from bough.search.star_wm import SimulateAndRefine, StarWm
from bough.search.step_info import InfoValue, PruneByInfo
from bough.search.subgoal import SubgoalHint, SubgoalValue
from bough.search.subgoal_search import SubgoalSearch
from bough.search.surrogate import Surrogate
from bough.search.tool_chain import PlanCost
from bough.search.tree import SearchTree
from bough.search.tree_instruct import TreeInstruct
from bough.search.tree_planner import TreePlanner
from bough.search.vote import Vote

__all__ = [
    "AStarCost",
    "ActionKind",
    "Admissible",
    "AdvantageBackup",
    "Agreement",
    "Aries",
    "BackJump",
    "Backup",
    "BeamWidth",
    "Best",
    "BestOf",
    "Bounded",
    "Commit",
    "CommitToExecuted",
    "Confidence",
    "ConstantValue",
    "Cosine",
    "CriticRating",
    "CriticTurns",
    "CriticValue",
    "Critique",
    "Curiosity",
    "DedupeSimilar",
    "DedupeStates",
    "DepthFirst",
    "Descend",
    "DrawOpen",
    "EachKind",
    "Embedded",
    "EnvReturn",
    "Evaluate",
    "ExecuteAndEvaluate",
    "Expand",
    "FewestMatches",
    "FinishPathFirst",
    "FixedHint",
    "ForkAfterValid",
    "GuidedDescend",
    "Hint",
    "Hints",
    "Hybrid",
    "Ideas",
    "Imagine",
    "InfoValue",
    "Introspect",
    "Judge",
    "JudgeAction",
    "JudgePath",
    "KindHint",
    "KnownActions",
    "Level",
    "Likelihood",
    "Likely",
    "LimitRepeats",
    "LogRatio",
    "MaxBackup",
    "MeanBackup",
    "Mix",
    "NegamaxBackup",
    "NodeValue",
    "OracleValue",
    "Pairwise",
    "PathRating",
    "PayoffValue",
    "PlanCost",
    "PlanMemory",
    "ProgramCritic",
    "Proposal",
    "Prune",
    "PruneBelow",
    "PruneByInfo",
    "PruneRegressions",
    "Puct",
    "QValue",
    "Ranked",
    "Rate",
    "RatedValue",
    "RebaseAllocation",
    "Reflections",
    "Rethink",
    "RewardModelRating",
    "RewardModelValue",
    "RolloutValue",
    "RougeL",
    "Sample",
    "SampleCount",
    "SampleKinds",
    "Score",
    "Search",
    "SearchNode",
    "SearchTree",
    "Select",
    "ShareStates",
    "ShortestState",
    "Siblings",
    "Similarity",
    "SimulateAndRefine",
    "SoftmaxBackup",
    "Sparse",
    "StarWm",
    "SubgoalHint",
    "SubgoalSearch",
    "SubgoalValue",
    "SumBackup",
    "Surrogate",
    "TreeInstruct",
    "TreePlanner",
    "TurnsToGo",
    "Uct",
    "UncertainUct",
    "UnionOf",
    "UntilEnds",
    "VisitCount",
    "Vote",
    "WebDreamer",
]

"""An action, and its probability under the policy."""

make_callable(__name__)
