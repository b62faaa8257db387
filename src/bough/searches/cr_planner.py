"""CR-Planner: a critic selects the kind of a step, then the step."""

from collections.abc import Sequence

from bough.search.commit_to_executed import CommitToExecuted
from bough.search.critic_rating import CriticRating
from bough.search.frontier import Level
from bough.search.kinds import SampleKinds
from bough.search.search import Search

KINDS = ("reason: ", "query: ", "retrieve: ")


def cr_planner(kinds: Sequence[str] = KINDS, samples: int = 3) -> Search:
    """CR-Planner (arXiv 2410.01428): a critic selects the kind of a step, then one of its samples; needs a critic.

    At each state the critic rates the kinds, and the policy samples `samples` steps of the best one; the critic rates
    them, and the best is executed. One path, and no state is stepped twice, but the environment check is that of every
    search. The method `cr_planner` trains the critic on the values of a search.

    `kinds` are the texts with which a step of each kind begins; the defaults have the paper's names. The paper has a
    critic for the kinds and one for each kind's steps, trained on pairs; here one value head does both, after the
    first text of a step and at its end, and learns the values themselves.

    Try: `bough search runs/cr_planner_sokoban 'cr_planner(kinds=[up,down,left,right])'`
    """
    return Search(
        select=Level(),
        expand=SampleKinds(kinds=tuple(kinds), width=samples, best=True),
        rate=CriticRating(),
        prune=(CommitToExecuted(),),
        eager=True,
        max_evaluated=1,
    )
