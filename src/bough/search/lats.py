"""Language agent tree search."""

from bough.search.backup import MeanBackup
from bough.search.combine import Agreement, ExecuteAndEvaluate, Mix
from bough.search.descend import Descend
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.judge import Judge
from bough.search.reflect import Reflections
from bough.search.score import Uct
from bough.search.search import Search


def lats(width: int = 5, weight: float = 0.5, keep: int = 3, c: float = 1.0, rounds: int = 30) -> Search:
    """LATS (arXiv 2310.04406): UCT with the engine's word, agreement and reflections on failures; needs forks.

    Each round goes down by UCT, in which a child without a visit scores what it was rated; carries out `width` actions
    there and rates where they lead, with `weight` times what the judge says and the rest times how often the action was
    written; plays on from the best of them to the end; and backs up how that ended, 1 or -1. Reflections on the newest
    `keep` failures are told when actions are written.

    The released code divides the mean value by the visits again, which the search here does not; never ends when all
    children of the root are failed ends, which ends the search here; and does not reset one environment between
    siblings, where states here are values. It rates with the judge alone (weight 1) and also picks each action of the
    rollout among `width` rated ones; here the policy plays it.
    """
    return Search(
        select=Descend(by=Uct(c=c, unvisited="guess"), revisit=False),
        expand=Sample(width=width, hint=Reflections(keep=keep)),
        rate=ExecuteAndEvaluate(evaluate=Mix(parts=(Judge(), Agreement()), weights=(weight, 1 - weight))),
        evaluate=RolloutValue(),
        backup=MeanBackup(),
        eager=True,
        lead=1,
        lost=-1.0,
        rounds=rounds,
    )
