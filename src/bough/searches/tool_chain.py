"""ToolChain*: A* over actions, with costs from stored plans and the engine's own agreement."""

from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.plan_memory import PlanMemory
from bough.search.score import AStarCost
from bough.search.search import Search
from bough.search.tool_chain import NO_PLANS, PlanCost


def tool_chain(width: int = 4, memory: PlanMemory = NO_PLANS, weight: float = 1.0) -> Search:
    """ToolChain* (arXiv 2310.13227): A* over actions, with costs from stored plans and the engine's own agreement.

    At a node `width` actions are sampled and rated; the open action of least cost so far plus cost to go is executed
    next. `PlanCost` has both costs. The first success ends the search. The estimate is no lower bound, so the path
    found need not be the cheapest, as in the paper. There the memory grows from task to task; here it is fixed for
    a search, so that results do not depend on the order of the tasks: `memory=PlanMemory(trees=runs/found)` has the
    plans of an earlier search with `--out runs/found`.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Sample(width=width),
        rate=PlanCost(memory=memory),
    )
