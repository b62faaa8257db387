"""COS(M+O)S: Monte-Carlo tree search over plot steps by `Curiosity`."""

from bough.needs import POLICY
from bough.search.backup import MeanBackup
from bough.search.curiosity import Curiosity
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.score import Uct
from bough.search.search import Search


def cosmos(
    width: int = 4, simulations: int = 40, c: float = 1.0, peak: float = 1.5, spread: float = 0.75, role: str = POLICY
) -> Search:
    """COS(M+O)S (arXiv 2501.17104): Monte-Carlo tree search over plot steps by `Curiosity`; needs forks.

    Each round descends by UCT to a step without a value, evaluates it, and samples `width` next steps. The success of
    the environment counts nothing; the answer is the finished story of highest curiosity. Use it on the world `story`,
    or any environment of free text.
    """
    return Search(
        select=Descend(by=Uct(c=c), revisit=False),
        expand=Sample(width=width),
        evaluate=Curiosity(peak=peak, spread=spread, role=role),
        backup=MeanBackup(),
        success_value=None,
        stop_value=None,
        rounds=simulations,
    )
