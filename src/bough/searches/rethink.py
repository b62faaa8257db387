"""RethinkMCTS: searches thoughts, and rewrites failing ones once."""

from bough.search.backup import MaxBackup
from bough.search.descend import Descend
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.rethink import Rethink
from bough.search.score import Puct
from bough.search.search import Search


def rethink(width: int = 3, rounds: int = 16) -> Search:
    """RethinkMCTS (arXiv 2409.09584): searches thoughts, and rewrites failing ones once; needs forks.

    The paper's settings: three actions, sixteen rollouts, P-UCB with c 4 and base 10, the best return found below,
    discounted by .9 for each turn. Its reward is the share of public tests that pass. When all pass, it is .8 plus .2
    times the model's rating of its program: use `success_value=None` and
    `evaluate=Mix(parts=(EnvReturn(), Judge()), weights=(.8, .2))` without rollouts where the
    environment gives such a reward. The code rewrites in place; here the failed path stays in the tree, and counts
    nowhere in the search.
    """
    return Search(
        select=Descend(by=Puct(c=4.0, base=10.0, log=True), revisit=False),
        expand=Sample(width=width),
        rate=Rethink(),
        evaluate=RolloutValue(),
        backup=MaxBackup(gamma=0.9),
        rounds=rounds,
    )
