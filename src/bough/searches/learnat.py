"""LearNAT's search over sub-queries."""

from bough.search.backup import MeanBackup
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.score import Uct
from bough.search.search import Search
from bough.search.step_info import InfoValue, PruneByInfo


def learnat(width: int = 4, simulations: int = 50, c: float = 1.41) -> Search:
    """LearNAT (arXiv 2504.02327): a tree search over sub-queries, valued and pruned by syntax trees; needs forks.

    For `Sql(compares_syntax=true)`. A query is valued by the similarity of its syntax tree to that of the gold query, 1
    for a right answer, and pruned when it is not made of parts of it. UCT descends by the means of these values. Steps
    without a comparison, of other environments too, have the return of the path, and none is pruned. The released code
    adds one child per expansion, which makes its search a chain; here a node has `width` samples.
    """
    return Search(
        select=Descend(by=Uct(c=c), revisit=False),
        expand=Sample(width=width),
        evaluate=InfoValue(name="similarity"),
        backup=MeanBackup(),
        prune=(PruneByInfo(name="part"),),
        success_value=None,
        rounds=simulations,
        stop_value=None,
    )
