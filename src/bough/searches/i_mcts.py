"""I-MCTS: introspection before each action, and ratings that fade with visits."""

from bough.search.backup import MeanBackup
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.hybrid import Hybrid
from bough.search.introspect import Introspect
from bough.search.judge import JudgeAction
from bough.search.search import Search


def i_mcts(width: int = 3, rounds: int = 5) -> Search:
    """I-MCTS (arXiv 2502.14693): expands the open node of the best hybrid score in the tree; needs forks.

    Actions are sampled one after another. Before each, the engine analyses the result of the parent and those of the
    siblings, which are already executed, and the prompt has the analysis (`Introspect`). Then the judge rates all of
    them. In the released code the prompt has no results, and the ratings of the children are never awaited, so that
    their values stay 0; here each action has its own.
    """
    return Search(
        select=Best(by=Hybrid()),
        expand=Sample(width=width, hint=Introspect()),
        rate=JudgeAction(),
        evaluate=RolloutValue(),
        backup=MeanBackup(),
        rounds=rounds,
    )
