"""Searches in which the engine's word says which actions come first."""

import math

from bough.explore.search.backup import Max, Mean
from bough.explore.search.descend import Descend
from bough.explore.search.evaluate import Rollouts
from bough.explore.search.expand import Sample
from bough.explore.search.frontier import Best, Level
from bough.explore.search.hints import Hints, Kind, Say, Siblings
from bough.explore.search.hybrid import Hybrid
from bough.explore.search.judge import Judge, JudgeAction
from bough.explore.search.no_return import NoReturn
from bough.explore.search.prune import Keep
from bough.explore.search.question import Number, Words
from bough.explore.search.rank import Ranked
from bough.explore.search.reflect import Critique, Reflections
from bough.explore.search.score import Puct
from bough.explore.search.search import Search

EFFECT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "How much did the last action achieve, and how promising is what it led to? Answer with a number from 0 to 10."
)
OBEYS = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Does the last answer do all that it was told to? Answer yes or no."
)


def agent_q(width: int = 5, share: float = 0.5, c: float = 1.0) -> Search:
    """Experimental: Agent Q (arXiv 2408.07199): a self-critic ranks proposals, its word is mixed in; needs forks.

    Of the paper a summary was read, not its text; the share of the critic is a choice.
    """
    return Search(
        select=Descend(by=Hybrid(c=c, share=share), revisit=False),
        expand=Sample(width=width),
        rate=Ranked(),
        evaluate=Rollouts(),
        backup=Mean(),
    )


def i_mcts(width: int = 3, rounds: int = 5) -> Search:
    """I-MCTS (arXiv 2502.14693): the open action of best hybrid score anywhere in the tree goes on; needs forks.

    Actions are written knowing what was tried beside them, and judged before they are carried out. As released, the
    children's judgements are never waited for, so their values stay 0; here every action has its own.
    """
    return Search(
        select=Best(by=Hybrid()),
        expand=Sample(width=width, hint=Siblings()),
        rate=JudgeAction(),
        evaluate=Rollouts(),
        backup=Mean(),
        rounds=rounds,
    )


def web_pilot(width: int = 3, c: float = 1.0) -> Search:
    """Experimental: WebPilot (arXiv 2408.15978): differing actions, reflections, 0-10 rewards, maxima; needs forks.

    Of the paper a summary was read, not its text. The search of one subtask: its planner is not part of it.
    """
    return Search(
        select=Descend(by=Puct(c=c), revisit=False),
        expand=Sample(width=width, prior="even", hint=Hints(parts=(Siblings(), Reflections()))),
        evaluate=Judge(prompt=EFFECT, read=Number()),
        backup=Max(),
        eager=True,
    )


def spar(width: int = 3, keep: int = 2, n: int = 5, depth: int = 3) -> Search:
    """SPaR (arXiv 2412.11605): answers refined by critique, level by level, until judges say yes; needs forks.

    For environments in which each action is a whole answer that may be given anew; the answer to be refined is the
    first (`Task.start`), or else the first level is of first answers. The value is the share of `n` judgements that say
    yes, and the search ends with one above one half.
    """
    yes = Words(worth={"yes": 1.0, "no": 0.0})
    return Search(
        select=Level(),
        expand=Sample(width=width, hint=Critique()),
        evaluate=Judge(n=n, prompt=OBEYS, read=yes),
        prune=(Keep(width=keep),),
        eager=True,
        won=None,
        enough=math.nextafter(0.5, 1),
        anywhere=True,
        rounds=depth,
    )


def cr_planner(samples: int = 3) -> Search:
    """Experimental: CR-Planner (arXiv 2410.01428): one critic picks the kind of step, one the step; one path.

    Of the paper a summary was read, not its text. Its critics are trained on values of a search; here they are the
    agent's engine. No state is stepped twice, but it is checked as every search.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples, hint=Kind()),
        rate=JudgeAction(),
        prune=(NoReturn(),),
        eager=True,
        lead=1,
    )


def ats() -> Search:
    """Experimental: Autonomous tree-search (arXiv 2310.10686): the model writes the search itself; one path.

    Of the paper a summary was read, not its text. What it may write is the agent's `sampling.max_tokens`, or
    `limits.tokens` in all; the action is what the parser finds in the end.
    """
    text = (
        "Before you act, write a search: list the possible actions, what each leads to and how promising that is; "
        "follow the most promising, and go back where it fails. Then act."
    )
    return Search(select=Level(), expand=Sample(width=1, hint=Say(text=text)))
