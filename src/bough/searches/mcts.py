"""Monte-Carlo tree search."""

from dataclasses import replace

from bough.search.backup import MeanBackup
from bough.search.descend import Descend
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.score import Uct
from bough.search.search import Search


def mcts(width: int = 4, rollouts: int = 1, simulations: int | None = None, revisit: bool = True) -> Search:
    """Monte-Carlo tree search (UCT, Kocsis and Szepesvári, 2006): rollouts of the policy; needs forks.

    Each round descends by UCT to a node that is not evaluated, samples `rollouts` paths from it, and samples `width`
    actions of the policy for later rounds. Nodes without a visit come first.

    The first success ends the search. With `simulations` that many rounds run regardless of success: self-training
    needs several successful paths, and values from several visits. `revisit` is a field of `Descend`.
    """
    down = Descend(by=Uct(), revisit=revisit)
    search = Search(select=down, expand=Sample(width=width), evaluate=RolloutValue(n=rollouts), backup=MeanBackup())
    return simulating(search, simulations)


def simulating(search: Search, simulations: int | None) -> Search:
    """The search with a fixed number of rounds; unchanged for None."""
    return search if simulations is None else replace(search, rounds=simulations, stop_value=None)
