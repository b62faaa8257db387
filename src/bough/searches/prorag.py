"""ProRAG's search for the data of its process reward model."""

from bough.search.backup import MeanBackup
from bough.search.descend import Descend
from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.score import Puct
from bough.search.search import Search


def prorag(simulations: int = 200, width: int = 5, c: float = 2.5, gamma: float = 0.99) -> Search:
    """ProRAG (arXiv 2601.21912): PUCT with even priors and completions to the end, for pairs of sibling steps.

    A success is discounted by `gamma` a turn on the way up. The paper's simulation is greedy and its reward the F1 of
    the answer; here the policy samples, and the reward is success. In the paper a large model chooses one pair of good
    and bad steps among visited children; here the pairs are those whose values differ by a margin (`RewardModel.gap`).

    Args:
        simulations: Number of simulations of a task.
        width: Number of sampled steps at a node.
        c: Weight of the bonus for few visits.
        gamma: Discount of a turn.

    Try: `bough search runs/grpo_sokoban 'prorag()' evaluation.tasks='Tasks(split=train,count=200)' --out steps`
    """
    return Search(
        select=Descend(by=Puct(c=c), revisit=False),
        expand=Sample(width=width, prior="even"),
        evaluate=RolloutValue(),
        backup=MeanBackup(gamma=gamma),
        rounds=simulations,
        stop_value=None,
    )
