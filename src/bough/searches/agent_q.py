"""Agent Q: a critic ranks proposed actions before they are executed."""

from bough.search.backup import MeanBackup
from bough.search.descend import Descend
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.hybrid import Hybrid
from bough.search.rank import Ranked
from bough.search.search import Search


def agent_q(width: int = 5, share: float = 0.5, c: float = 1.0) -> Search:
    """Experimental: Agent Q (arXiv 2408.07199): scores mix a self-critic's ranks of actions with q; needs forks.

    Written from a summary of the paper; the critic's weight `share` is a choice.
    """
    return Search(
        select=Descend(by=Hybrid(c=c, share=share), revisit=False),
        expand=Sample(width=width),
        rate=Ranked(),
        evaluate=RolloutValue(),
        backup=MeanBackup(),
    )
