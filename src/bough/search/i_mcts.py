"""I-MCTS: ratings of actions that fade with visits."""

from bough.search.backup import MeanBackup
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.hints import Siblings
from bough.search.hybrid import Hybrid
from bough.search.judge import JudgeAction
from bough.search.search import Search


def i_mcts(width: int = 3, rounds: int = 5) -> Search:
    """I-MCTS (arXiv 2502.14693): expands the open node of the best hybrid score in the tree; needs forks.

    Actions are sampled one after another: the prompt of each has the earlier ones, already executed, with their
    observations. Then the judge rates all of them. In the released code the prompt has no observations, and the ratings
    of the children are never awaited, so that their values stay 0; here each action has its own.
    """
    return Search(
        select=Best(by=Hybrid()),
        expand=Sample(width=width, hint=Siblings(carry_out=True)),
        rate=JudgeAction(),
        evaluate=RolloutValue(),
        backup=MeanBackup(),
        rounds=rounds,
    )
