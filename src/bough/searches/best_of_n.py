"""Best of n by a learned reward: the path of the highest score among n samples."""

from bough.search.best_of import BestOf
from bough.search.reward_value import RewardModelValue
from bough.tree import PathScore


def best_of_n(folder: str, n: int = 8, by: PathScore = "min", vote: bool = False, max_concurrent: int = 8) -> BestOf:
    """Best of n by a learned reward: the path of the highest score among n samples.

    Args:
        folder: As `bough train-reward` wrote it.
        n: Number of paths.
        by: How the steps make the score of their path: "mean", "min", "last" or "product".
        vote: Whether paths with the same last action add their scores; for tasks whose last action is the answer.
        max_concurrent: Number of concurrent paths.

    Try: `bough search runs/grpo_sokoban 'best_of_n(folder="prm",by=mean)'`
    """
    return BestOf(
        n=n, max_concurrent=max_concurrent, judge=RewardModelValue(folder=folder, by=by), vote=vote, stop_value=None
    )
