"""CAPO (arXiv 2508.02298)."""

from bough.appraise import PathCritique
from bough.appraise.path_critique import Vote
from bough.credit import Capo
from bough.needs import POLICY
from bough.reward import Judged
from bough.train import Run, World


def capo(world: World, *, judge: str = POLICY, n: int = 4, vote: Vote = "majority", wrong: float = 0.5) -> Run:
    """CAPO (arXiv 2508.02298): a model critiques each path and lists its wrong steps; their tokens are paid less.

    Assumes a model that can judge: set `judge` and `models`, else the policy judges itself. A wrong
    step costs `wrong`: below the reward of a success, here 1, a success with mistakes stays above a failure without.

    Try: `bough train 'capo(judge=judge)' --on sokoban
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    """
    return world.run(
        appraisers=(PathCritique(role=judge, n=n, vote=vote),),
        rewards=(*world.rewards, Judged(column="critique", weight=-wrong)),
        credit=Capo(),
    )
