"""WebPilot: diverse actions with reflections, and the best value below each."""

from bough.appraise.prompts import NumberParser
from bough.search.backup import MaxBackup
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.hints import Hints, Siblings
from bough.search.judge import Judge
from bough.search.reflect import Reflections
from bough.search.score import Puct
from bough.search.search import Search

EFFECT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "How much did the last action achieve, and how promising is what it led to? Answer with a number from 0 to 10."
)


def web_pilot(width: int = 3, c: float = 1.0) -> Search:
    """Experimental: WebPilot (arXiv 2408.15978): diverse actions, reflections, 0-10 rewards, maxima; needs forks.

    Written from a summary of the paper. It is the search of one subtask, without the planner.
    """
    return Search(
        select=Descend(by=Puct(c=c), revisit=False),
        expand=Sample(width=width, prior="even", hint=Hints(parts=(Siblings(carry_out=True), Reflections()))),
        evaluate=Judge(prompt=EFFECT, read=NumberParser()),
        backup=MaxBackup(),
        eager=True,
    )
