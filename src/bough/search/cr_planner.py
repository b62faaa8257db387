"""The kind of a step first, then the step."""

from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.hints import KindHint
from bough.search.judge import JudgeAction
from bough.search.no_return import CommitToExecuted
from bough.search.search import Search


def cr_planner(samples: int = 3) -> Search:
    """Experimental: CR-Planner (arXiv 2410.01428): one critic picks the kind of step, one the step; one path.

    Of the paper a summary was read, not its text. Its critics are trained on values of a search; here they are the
    agent's engine. No state is stepped twice, but it is checked as every search.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples, hint=KindHint()),
        rate=JudgeAction(),
        prune=(CommitToExecuted(),),
        eager=True,
        lead=1,
    )
