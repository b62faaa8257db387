"""Best-first searches over places and over actions."""

from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.frontier import Best, Level
from bough.search.prune import BeamWidth, DedupeStates
from bough.search.score import NodeValue
from bough.search.search import Search


def best_first(width: int = 4) -> Search:
    """Best-first search in the real environment (arXiv 2407.01476): the place worth most goes on; needs a critic.

    What is taken up is carried out, evaluated, and `width` actions are written there. As in the paper, actions wait in
    the order of what the place in which they were written is worth, so that evaluations are spent on what is taken up
    only; of equals the first found comes first. The paper asks a language model what a place is worth; take any
    `evaluate`. Nothing has to be played again where states are values.
    """
    return Search(select=Best(by=NodeValue()), expand=Sample(width=width), evaluate=CriticValue())


def beam(width: int = 4, samples: int = 4) -> Search:
    """Step-level beam search (AlphaMath, arXiv 2405.03553): the best places of each level go on; needs a critic.

    From each of `width` places `samples` actions are carried out; what is worth most stays. A path that ends leaves the
    beam, which is narrower from then on, and the search answers with the best of them.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples),
        evaluate=CriticValue(),
        prune=(DedupeStates(), BeamWidth(width=width, shrink=True)),
        eager=True,
        enough=None,
    )
