"""Tree search: one loop over five choices, which are select, expand, evaluate, back up and prune.

The package is also a function, `bough.search(run, "mcts()")`: see `bough.api`.
"""

from bough.lazy import make_callable
from bough.search.a_star import Bounded, TurnsToGo, a_star
from bough.search.agent_q import agent_q
from bough.search.agent_swift import EachKind, GuidedDescend, UncertainUct, agent_swift
from bough.search.aries import Aries, Votes
from bough.search.ats import ats
from bough.search.backup import AdvantageBackup, MaxBackup, MeanBackup, NegamaxBackup, SoftmaxBackup, SumBackup
from bough.search.best_first import beam, best_first
from bough.search.best_of import BestOf
from bough.search.bfs_prover import bfs_prover
from bough.search.board_games import PayoffValue, board_games
from bough.search.code_tree import PruneRegressions, code_tree
from bough.search.combine import Agreement, EnvReturn, ExecuteAndEvaluate, Mix
from bough.search.commit import Commit
from bough.search.commit_to_executed import CommitToExecuted
from bough.search.cr_planner import cr_planner
from bough.search.critic_turns import CriticTurns
from bough.search.descend import Descend
from bough.search.dfsdt import dfsdt
from bough.search.dts import dts
from bough.search.ets import RougeL, Similarity, Sparse, ets
from bough.search.evaluate import ConstantValue, CriticValue, OracleValue, RolloutValue
from bough.search.expand import Admissible, Sample
from bough.search.finish_path_first import FinishPathFirst
from bough.search.frontier import Best, DepthFirst, Level, UnionOf
from bough.search.hints import FixedHint, Hints, KindHint, Siblings
from bough.search.hybrid import Hybrid
from bough.search.i_mcts import i_mcts
from bough.search.imagine import Imagine, WebDreamer
from bough.search.judge import Confidence, Judge, JudgeAction
from bough.search.lats import lats
from bough.search.log_ratio import LogRatio, PathRating, implicit_beam
from bough.search.mcts import mcts, puct
from bough.search.node import SearchNode
from bough.search.pieces import Backup, Evaluate, Expand, Hint, Proposal, Prune, Rate, Score, Select
from bough.search.prune import BackJump, BeamWidth, DedupeSimilar, DedupeStates, LimitRepeats, PruneBelow
from bough.search.q_star import Likely, q_star
from bough.search.rank import Pairwise, Ranked
from bough.search.rebase import RebaseAllocation, rebase
from bough.search.reflect import Critique, Reflections
from bough.search.rethink import Rethink, rethink
from bough.search.score import AStarCost, Likelihood, NodeValue, Puct, QValue, RatedValue, Uct, VisitCount
from bough.search.search import Search
from bough.search.spar import spar
from bough.search.star_wm import Foresee, StarWm
from bough.search.surrogate import Surrogate
from bough.search.tree import SearchTree
from bough.search.tree_instruct import TreeInstruct
from bough.search.tree_planner import TreePlanner
from bough.search.web_pilot import web_pilot

__all__ = [
    "SumBackup",
    "Admissible",
    "Agreement",
    "Aries",
    "DedupeSimilar",
    "BackJump",
    "Backup",
    "PruneBelow",
    "Best",
    "BestOf",
    "Bounded",
    "Commit",
    "Confidence",
    "CriticTurns",
    "CriticValue",
    "Critique",
    "RebaseAllocation",
    "DepthFirst",
    "Descend",
    "WebDreamer",
    "EachKind",
    "Evaluate",
    "Expand",
    "Foresee",
    "QValue",
    "AdvantageBackup",
    "RatedValue",
    "GuidedDescend",
    "Hint",
    "Hints",
    "Hybrid",
    "Imagine",
    "Judge",
    "JudgeAction",
    "BeamWidth",
    "KindHint",
    "Level",
    "Likelihood",
    "Likely",
    "ExecuteAndEvaluate",
    "MaxBackup",
    "MeanBackup",
    "Mix",
    "CommitToExecuted",
    "ConstantValue",
    "FinishPathFirst",
    "OracleValue",
    "EnvReturn",
    "Pairwise",
    "Prune",
    "Puct",
    "Ranked",
    "Rate",
    "Reflections",
    "LimitRepeats",
    "Rethink",
    "RolloutValue",
    "RougeL",
    "Sample",
    "FixedHint",
    "Score",
    "Search",
    "SearchNode",
    "SearchTree",
    "DedupeStates",
    "Select",
    "UncertainUct",
    "UnionOf",
    "Votes",
    "Siblings",
    "Similarity",
    "SoftmaxBackup",
    "Sparse",
    "StarWm",
    "Surrogate",
    "TreeInstruct",
    "TreePlanner",
    "TurnsToGo",
    "Uct",
    "VisitCount",
    "AStarCost",
    "PruneRegressions",
    "NegamaxBackup",
    "NodeValue",
    "PayoffValue",
    "Proposal",
    "a_star",
    "agent_q",
    "agent_swift",
    "ats",
    "beam",
    "best_first",
    "bfs_prover",
    "board_games",
    "code_tree",
    "cr_planner",
    "dfsdt",
    "dts",
    "ets",
    "i_mcts",
    "lats",
    "mcts",
    "puct",
    "q_star",
    "rebase",
    "rethink",
    "spar",
    "web_pilot",
    "LogRatio",
    "PathRating",
    "implicit_beam",
]

"""An action, and its probability under the policy."""

make_callable(__name__)
