"""Tree search: one loop over five choices, which are select, expand, evaluate, back up and prune.

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
    """Selects the nodes of the next round."""

    def __call__(self, tree: SearchTree) -> Sequence[SearchNode]:
        """Nodes to execute and expand, or ends to count once more; an empty sequence ends the search.

        A node that occurs twice gets twice as many actions.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Scores a node; the highest score is selected, ties go to the first found."""

    def __call__(self, node: SearchNode) -> float:
        """The score; siblings are available through the node's parent."""
        ...


@runtime_checkable
class FixedScore(Score, Protocol):
    """A score that is constant after the round in which the node was found, so selectors compute it once."""

    @property
    def fixed(self) -> bool:
        """Whether the score is constant with the current settings."""
        ...


Written: TypeAlias = tuple[PendingAction, float]
"""An action, and its probability under the policy."""


@runtime_checkable
class Hint(Protocol):
    """Returns a text that is added to the observation when an action is sampled."""

    @property
    def in_turn(self) -> bool:
        """Whether the hint depends on the actions sampled before, so that actions are sampled one after another."""
        ...

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint at a node where the actions `earlier` were already sampled; "" for none.

        Raises:
            BudgetExceeded: when it does not fit a budget; no action is sampled then.
        """
        ...


@runtime_checkable
class Expand(Protocol):
    """Proposes the actions at a node."""

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Written]:
        """Propose actions at a node, `times` as many as usual; fewer where a budget ends it."""
        ...


@runtime_checkable
class Rate(Protocol):
    """Rates actions before they are executed."""

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each of some children of a node [children].

        Raises:
            BudgetExceeded: when it does not fit a budget; the ratings stay unknown then.
        """
        ...


@runtime_checkable
class Evaluate(Protocol):
    """Estimates the values of nodes."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value of a node's state.

        nan means unknown: nothing is counted, and the node is evaluated again when it is selected again.

        Raises:
            BudgetExceeded: when it does not fit a budget; the value stays unknown.
            EngineFault: when the engine broke; the search retries `Search.retries` times.
        """
        ...


@runtime_checkable
class Backup(Protocol):
    """Propagates a value from a node to its ancestors."""

    def __call__(self, node: SearchNode) -> None:
        """Count the value of a node once: update `q` and `visits` of the node and of all its ancestors."""
        ...


@runtime_checkable
class Prune(Protocol):
    """Prunes nodes."""

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune nodes of the tree; `fresh` are the nodes that this round evaluated."""
        ...


# Last, because every component imports the tree, and the loop imports every component.
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
