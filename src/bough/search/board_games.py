"""Board games by external search: Monte-Carlo tree search over the actions of both seats."""

from dataclasses import dataclass

from bough.search.backup import NegamaxBackup
from bough.search.commit import Commit
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.score import Puct, VisitCount
from bough.search.search import Search
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoffValue:
    """The payoff of the seat that the search is for: at the end of a path the game's, elsewhere an estimate.

    It needs a search with `success_value=None`, so that it also values ends: a draw differs from a loss.

    Attributes:
        n: Number of games that the policy plays from a state to the end; the estimate is their mean.
        evaluate: Estimates the payoff of the seat that acts in place of them, such as `CriticValue`; its value counts
            negatively where another seat acts.
    """

    n: int = 1
    evaluate: Evaluate | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"PayoffValue.n: got {self.n}; need at least 1")

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; that of a failed path where no game reached an end.

        Raises:
            BudgetExceeded: when the evaluation does not fit a budget.
        """
        if node.ended:
            return node.reward
        if self.evaluate is not None:
            value = await self.evaluate(tree, node)
            return value if tree.acts(node) else -value
        most = [tree.max_cost(node, turns=None)] * self.n
        rolled_out = await tree.together((tree.roll_out(node) for _ in range(self.n)), most)
        ends = [end for end in rolled_out if end is not None]
        return sum(end.reward for end in ends) / len(ends) if ends else tree.failure_value


def board_games(width: int = 4, simulations: int = 64, c: float = 1.5, moves: int = 200) -> Commit:
    """Board games by external search (arXiv 2412.12119): PUCT over the actions of both seats; needs forks.

    `simulations` rounds of PUCT on the policy's priors, with negamax backup, decide each action: the most visited one.
    Then the other seat's action is searched in the same way, to the end of the game. The policy acts for both seats;
    where a script or a model of its own acts for a seat, the search reads its replies. Payoffs are from -1 to 1.

    The paper's model also predicts the states, the legal actions and the values. Here the environment gives the states,
    the policy plays games to the end for the values, and `PayoffValue(evaluate=CriticValue())` takes a critic. The
    internal search of the paper is an environment, `InternalSearch`, in the world `board_games`.

    Try: `bough train grpo --on board_games`
    Try: `bough search grpo 'board_games()' --on board_games
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    """
    search = Search(
        select=Descend(by=Puct(c=c)),
        expand=Sample(width=width),
        evaluate=PayoffValue(),
        backup=NegamaxBackup(),
        success_value=None,
        failure_value=-1.0,
        stop_value=None,
        rounds=simulations,
    )
    return Commit(search=search, to="action", by=VisitCount(), moves=moves)
