"""CR-Planner: a critic selects the kind of a step, then the step."""

from bough.search.commit_to_executed import CommitToExecuted
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.hints import KindHint
from bough.search.judge import JudgeAction
from bough.search.search import Search


def cr_planner(samples: int = 3) -> Search:
    """Experimental: CR-Planner (arXiv 2410.01428): one critic selects the kind of step, one the step; one path.

    Written from a summary of the paper. Its critics are trained on values of a search; here they are the agent's
    engine. No state is stepped twice, but the environment check is that of every search.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples, hint=KindHint()),
        rate=JudgeAction(),
        prune=(CommitToExecuted(),),
        eager=True,
        max_evaluated=1,
    )
