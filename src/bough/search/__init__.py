"""Search: one loop over five choices: select, expand, evaluate, back up, prune.

The package is also a function, `bough.search(run, "mcts()")`: see `bough.api`.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from bough.lazy import make_callable
from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@runtime_checkable
class Select(Protocol):
    """Says where a search goes on."""

    def __call__(self, tree: SearchTree) -> Sequence[SearchNode]:
        """Nodes to carry out and write on at, or ends to count once more; none ends the search.

        At one that is named twice twice as many actions are written.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Says how promising a node is; the highest is taken, the first found of equals."""

    def __call__(self, node: SearchNode) -> float:
        """A number; its siblings can be looked at through its parent."""
        ...


@runtime_checkable
class FixedScore(Score, Protocol):
    """A score that does not change after the round in which the node was found, so that selectors compute it once."""

    @property
    def fixed(self) -> bool:
        """Whether the settings make it so."""
        ...


Written: TypeAlias = tuple[PendingAction, float]
"""An action, and how likely the policy finds it."""


@runtime_checkable
class Hint(Protocol):
    """Says what the policy is told besides the observation when it writes an action."""

    @property
    def in_turn(self) -> bool:
        """Whether it looks at what was just written, so that actions are written one after another."""
        ...

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """What to say at a node where `earlier` actions were written already; "" for nothing.

        Raises:
            BudgetExceeded: when a budget can't pay for it; nothing is written then.
        """
        ...


@runtime_checkable
class Expand(Protocol):
    """Writes the actions that are considered at a place."""

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Written]:
        """Write actions at a node, `times` as many as usual; where a budget ends it, those that there are."""
        ...


@runtime_checkable
class Rate(Protocol):
    """Says what actions are worth before they are carried out."""

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each of some children of a node.

        Raises:
            BudgetExceeded: when a budget can't pay for it; nobody knows then.
        """
        ...


@runtime_checkable
class Evaluate(Protocol):
    """Says what places are worth."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """What it is worth to be where a node led.

        nan is no opinion: nothing is counted, and the place is asked about again should it be selected again.

        Raises:
            BudgetExceeded: when a budget can't pay for it; that is no opinion either.
            EngineFault: when the engine broke; the search asks again, a few times.
        """
        ...


@runtime_checkable
class Backup(Protocol):
    """Says what a value found below means above."""

    def __call__(self, node: SearchNode) -> None:
        """Count the value of a node once: update `q` and `visits` of it and of all nodes above it."""
        ...


@runtime_checkable
class Prune(Protocol):
    """Gives up on nodes."""

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up what is not worth going on with; `fresh` are the nodes that this round looked at."""
        ...


# Last, because every piece takes a tree, and the loop takes every piece.
from bough.search.a_star import Bounded, TurnsToGo, a_star  # noqa: E402
from bough.search.agent_q import agent_q  # noqa: E402
from bough.search.ats import ats  # noqa: E402
from bough.search.backup import AdvantageBackup, MaxBackup, MeanBackup, SoftmaxBackup, SumBackup  # noqa: E402
from bough.search.best_first import beam, best_first  # noqa: E402
from bough.search.best_of import BestOf  # noqa: E402
from bough.search.bfs_prover import bfs_prover  # noqa: E402
from bough.search.code_tree import PruneRegressions, code_tree  # noqa: E402
from bough.search.combine import Agreement, EnvReturn, ExecuteAndEvaluate, Mix  # noqa: E402
from bough.search.commit import Commit  # noqa: E402
from bough.search.cr_planner import cr_planner  # noqa: E402
from bough.search.critic_turns import CriticTurns  # noqa: E402
from bough.search.descend import Descend  # noqa: E402
from bough.search.dfsdt import dfsdt  # noqa: E402
from bough.search.dts import dts  # noqa: E402
from bough.search.ets import RougeL, Similarity, Sparse, ets  # noqa: E402
from bough.search.evaluate import ConstantValue, CriticValue, OracleValue, RolloutValue  # noqa: E402
from bough.search.expand import Admissible, Sample  # noqa: E402
from bough.search.frontier import Best, DepthFirst, Level, UnionOf  # noqa: E402
from bough.search.hints import FixedHint, Hints, KindHint, Siblings  # noqa: E402
from bough.search.hybrid import Hybrid  # noqa: E402
from bough.search.i_mcts import i_mcts  # noqa: E402
from bough.search.imagine import Dreamer, Imagine  # noqa: E402
from bough.search.judge import Confidence, Judge, JudgeAction  # noqa: E402
from bough.search.lats import lats  # noqa: E402
from bough.search.mcts import mcts, puct  # noqa: E402
from bough.search.no_return import CommitToExecuted  # noqa: E402
from bough.search.onward import FinishPathFirst  # noqa: E402
from bough.search.prune import BackJump, BeamWidth, DedupeSimilar, DedupeStates, LimitRepeats, PruneBelow  # noqa: E402
from bough.search.q_star import Likely, q_star  # noqa: E402
from bough.search.rank import Pairwise, Ranked  # noqa: E402
from bough.search.rebase import RebaseAllocation, rebase  # noqa: E402
from bough.search.reflect import Critique, Reflections  # noqa: E402
from bough.search.rethink import Rethink, rethink  # noqa: E402
from bough.search.score import AStarCost, Likelihood, NodeValue, Puct, QValue, RatedValue, Uct, VisitCount  # noqa: E402
from bough.search.search import Search  # noqa: E402
from bough.search.spar import spar  # noqa: E402
from bough.search.tree_planner import TreePlanner  # noqa: E402
from bough.search.web_pilot import web_pilot  # noqa: E402

__all__ = [
    "SumBackup",
    "Admissible",
    "Agreement",
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
    "Dreamer",
    "Evaluate",
    "Expand",
    "QValue",
    "AdvantageBackup",
    "RatedValue",
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
    "UnionOf",
    "Siblings",
    "Similarity",
    "SoftmaxBackup",
    "Sparse",
    "TreePlanner",
    "TurnsToGo",
    "Uct",
    "VisitCount",
    "AStarCost",
    "PruneRegressions",
    "NodeValue",
    "Written",
    "a_star",
    "agent_q",
    "ats",
    "beam",
    "best_first",
    "bfs_prover",
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
]

make_callable(__name__)
