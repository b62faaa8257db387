"""Monte-Carlo tree search, with and without the policy's opinion."""

from bough.explore.search.backup import Mean
from bough.explore.search.descend import Descend
from bough.explore.search.evaluate import CriticValue, Rollouts
from bough.explore.search.expand import Sample
from bough.explore.search.score import Puct, Uct
from bough.explore.search.search import Search


def mcts(width: int = 4, rollouts: int = 1) -> Search:
    """Monte-Carlo tree search (UCT, Kocsis and Szepesvári, 2006): rollouts of the policy; needs forks.

    Each round goes down to a place that was not looked at by UCT, plays `rollouts` paths on from there, and considers
    `width` actions of the policy for the next time. What is not visited yet comes first.
    """
    return Search(select=Descend(by=Uct()), expand=Sample(width=width), evaluate=Rollouts(n=rollouts), backup=Mean())


def puct(width: int = 5, c: float = 1.5) -> Search:
    """AlphaMath's search (arXiv 2405.03553): PUCT on the policy's priors; needs a critic.

    An action's prior is the exponential of its mean token log-probability. Paths that succeed are worth 1 and others
    -1, as the paper's critic learns them.
    """
    return Search(
        select=Descend(by=Puct(c=c)), expand=Sample(width=width), evaluate=CriticValue(), backup=Mean(), lost=-1.0
    )
