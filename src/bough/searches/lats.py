"""LATS: language agent tree search."""

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
    """LATS (arXiv 2310.04406): UCT with a judge, self-consistency and reflections on failures; needs forks.

    Each round descends by UCT, in which a child without a visit scores its rating. It executes `width` actions there
    and rates the states after them: `weight` times the judge's value, plus the rest times the share of equal samples.
    It rolls out from the best of them to the end, and backs up 1 or -1. The prompts of new actions have reflections on
    the newest `keep` failures.

    The released code divides the mean value by the visits again; here it is divided once. It never ends when all
    children of the root are failed ends; here the search ends. It does not reset one environment between siblings; here
    states are values. It rates with the judge alone (weight 1) and also selects each action of the rollout among
    `width` rated ones; here the policy samples it.
    """
    return Search(
        select=Descend(by=Uct(c=c, unvisited="rating"), revisit=False),
        expand=Sample(width=width, hint=Reflections(keep=keep)),
        rate=ExecuteAndEvaluate(evaluate=Mix(parts=(Judge(), Agreement()), weights=(weight, 1 - weight))),
        evaluate=RolloutValue(),
        backup=MeanBackup(),
        eager=True,
        max_evaluated=1,
        failure_value=-1.0,
        rounds=rounds,
    )
