"""Board games by external search: PUCT over the actions of both seats."""

from bough.search.backup import NegamaxBackup
from bough.search.board_games import PayoffValue
from bough.search.commit import Commit
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.score import Puct, VisitCount
from bough.search.search import Search


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
