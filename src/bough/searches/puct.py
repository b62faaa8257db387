"""AlphaMath's search: PUCT on the policy's priors."""

from bough.search.backup import MeanBackup
from bough.search.descend import Descend
from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.score import Puct
from bough.search.search import Search
from bough.searches.mcts import simulating


def puct(width: int = 5, c: float = 1.5, simulations: int | None = None, revisit: bool = True) -> Search:
    """AlphaMath's search (arXiv 2405.03553): PUCT on the policy's priors; needs a critic.

    An action's prior is the exponential of its mean token log-probability. Paths that succeed have value 1 and others
    -1, as the paper's critic learns them. The paper runs 40 `simulations` without `revisit`; see `mcts` for both.
    """
    down = Descend(by=Puct(c=c), revisit=revisit)
    search = Search(
        select=down, expand=Sample(width=width), evaluate=CriticValue(), backup=MeanBackup(), failure_value=-1.0
    )
    return simulating(search, simulations)
