"""WebPilot: a planner of subtasks, and for each one a tree search with reflections and the best value below."""

from bough.ask.prompts import NumberParser
from bough.search.backup import MaxBackup
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.hints import Hints, Siblings
from bough.search.judge import Judge
from bough.search.reflect import Critique, Reflections
from bough.search.score import Puct
from bough.search.search import Search
from bough.search.subgoal import REACHED, SubgoalHint, SubgoalValue
from bough.search.subgoal_search import SubgoalSearch

EFFECT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "How much did the last action achieve, and how promising is what it led to? Answer with a number from 0 to 10."
)
AFTER = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Say in two sentences what the last action achieved, and what the next one must consider."
)


def web_pilot(width: int = 3, c: float = 1.0, rounds: int = 10, revisions: int = 2) -> SubgoalSearch:
    """WebPilot (arXiv 2408.15978): plans subtasks, searches each with reflections and maxima; needs forks.

    Globally, a planner divides the task into subtasks, and revises the rest of its plan after each one that is reached,
    and after each one that is not, with a reflection on the failed search. Locally, each subtask has a tree search of
    up to `rounds` expansions. An expansion samples one action, up to `width` at a node, with the subtask, the earlier
    actions there with their results, a reflection on the last action and reflections on failures in the prompt. The
    action is executed, and rated from 0 to 10 by its effect and its promise. PUCT with equal priors selects, and the
    best value below a node counts. A subtask is complete when the model confirms it.

    Written from summaries of the paper: its prompts, and the roles of its extractor and verifier, could not be checked.
    """
    local = Search(
        # The prior of one sample is 1.
        select=Descend(by=Puct(c=c / width), revisit=False),
        expand=Sample(
            width=1,
            prior="even",
            hint=Hints(parts=(SubgoalHint(), Critique(prompt=AFTER), Siblings(execute_first=True), Reflections())),
        ),
        evaluate=SubgoalValue(value=Judge(prompt=EFFECT, read=NumberParser())),
        backup=MaxBackup(),
        expansions_per_node=width,
        eager=True,
        success_value=REACHED,
        stop_value=REACHED,
        answer_at_any_node=True,
        rounds=rounds,
    )
    return SubgoalSearch(search=local, revisions=revisions, reflect=True)
