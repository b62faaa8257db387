"""A*: the shortest path, by an estimate of the turns to go."""

from bough.search.a_star import Bounded, TurnsToGo
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.prune import DedupeStates
from bough.search.score import AStarCost
from bough.search.search import Search


def a_star(width: int = 4, weight: float = 1.0) -> Search:
    """A* (Hart, Nilsson and Raphael, 1968): the shortest path, by an estimate of the turns to go; needs state keys.

    All children of a node are executed and estimated. The node with the fewest turns so far plus turns to go is
    expanded next, ties go to the deepest. The search ends when no open node can lead to a shorter path. Textbook A*
    ends when a solution is selected for expansion; here the first success found is not always a shortest. The estimate
    is the environment's oracle; use any `evaluate` that returns minus the turns to go. `tool_chain` has estimates and
    costs from stored plans instead.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Sample(width=width),
        evaluate=TurnsToGo(),
        prune=(DedupeStates(), Bounded()),
        eager=True,
        stop_value=None,
    )
