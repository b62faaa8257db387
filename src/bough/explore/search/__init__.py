"""Search: trees that grow where it pays, as one loop over five small choices.

select -> carry out, write on -> evaluate -> back up -> prune -> select ...
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from bough.explore.cursor import Draft
from bough.explore.search.node import SearchNode
from bough.explore.search.tree import ANSWER, SearchTree


@runtime_checkable
class Select(Protocol):
    """Says where a search goes on."""

    def __call__(self, tree: SearchTree) -> Sequence[SearchNode]:
        """Nodes to carry out and expand, or to count once more; none ends the search.

        One that is named twice is expanded to twice as many children.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Says how promising a node is; the highest is taken, the first found of equals."""

    def __call__(self, node: SearchNode) -> float:
        """A number; its siblings can be looked at through its parent."""
        ...


Written: TypeAlias = tuple[Draft, float]
"""An action, and how likely the policy finds it."""


@runtime_checkable
class Hint(Protocol):
    """Says what the policy is told besides the observation when it writes an action."""

    @property
    def in_turn(self) -> bool:
        """Whether it looks at what was just written, so that actions are written one after another."""
        ...

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[str]) -> str:
        """What to say at a node where `earlier` actions were written already; "" for nothing.

        Raises:
            Spent: when a budget can't pay for it; nothing is written then.
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
            Spent: when a budget can't pay for it; nobody knows then.
        """
        ...


@runtime_checkable
class Evaluate(Protocol):
    """Says what places are worth."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """What it is worth to be where a node led.

        Raises:
            Spent: when a budget can't pay for it; the place then is worth as little as a path that failed.
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
        """Give up what is not worth going on with; `fresh` are the nodes that were just evaluated."""
        ...


# Last, because every piece takes a tree, and the loop takes every piece.
from bough.explore.search.a_star import TurnsToGo, a_star  # noqa: E402
from bough.explore.search.backup import Max, Mean, Soft  # noqa: E402
from bough.explore.search.best_first import beam, best_first  # noqa: E402
from bough.explore.search.best_of import BestOf  # noqa: E402
from bough.explore.search.combine import Agreement, Look, Mix, Paid  # noqa: E402
from bough.explore.search.critic_turns import CriticTurns  # noqa: E402
from bough.explore.search.critics import agent_q, ats, cr_planner, i_mcts, spar, web_pilot  # noqa: E402
from bough.explore.search.descend import Descend  # noqa: E402
from bough.explore.search.evaluate import CriticValue, Nothing, Oracle, Rollouts  # noqa: E402
from bough.explore.search.expand import Admissible, Sample  # noqa: E402
from bough.explore.search.frontier import Best, Level  # noqa: E402
from bough.explore.search.hints import Hints, Kind, Say, Siblings  # noqa: E402
from bough.explore.search.hybrid import Hybrid  # noqa: E402
from bough.explore.search.imagine import Dreamer, Imagine  # noqa: E402
from bough.explore.search.judge import Judge, JudgeAction  # noqa: E402
from bough.explore.search.lats import lats  # noqa: E402
from bough.explore.search.mcts import mcts, puct  # noqa: E402
from bough.explore.search.no_return import NoReturn  # noqa: E402
from bough.explore.search.prune import Keep, Seen  # noqa: E402
from bough.explore.search.question import Number, Words  # noqa: E402
from bough.explore.search.rank import Pairwise, Ranked  # noqa: E402
from bough.explore.search.reflect import Critique, Reflections  # noqa: E402
from bough.explore.search.rethink import Rethink, rethink  # noqa: E402
from bough.explore.search.score import Guess, Likelihood, Puct, Uct, Way, Worth  # noqa: E402
from bough.explore.search.search import Search  # noqa: E402

__all__ = [
    "ANSWER",
    "Admissible",
    "Agreement",
    "Backup",
    "Best",
    "BestOf",
    "CriticTurns",
    "CriticValue",
    "Critique",
    "Descend",
    "Dreamer",
    "Evaluate",
    "Expand",
    "Guess",
    "Hint",
    "Hints",
    "Hybrid",
    "Imagine",
    "Judge",
    "JudgeAction",
    "Keep",
    "Kind",
    "Level",
    "Likelihood",
    "Look",
    "Max",
    "Mean",
    "Mix",
    "NoReturn",
    "Nothing",
    "Number",
    "Oracle",
    "Paid",
    "Pairwise",
    "Prune",
    "Puct",
    "Ranked",
    "Rate",
    "Reflections",
    "Rethink",
    "Rollouts",
    "Sample",
    "Say",
    "Score",
    "Search",
    "SearchNode",
    "SearchTree",
    "Seen",
    "Select",
    "Siblings",
    "Soft",
    "TurnsToGo",
    "Uct",
    "Way",
    "Words",
    "Worth",
    "Written",
    "a_star",
    "agent_q",
    "ats",
    "beam",
    "best_first",
    "cr_planner",
    "i_mcts",
    "lats",
    "mcts",
    "puct",
    "rethink",
    "spar",
    "web_pilot",
]
