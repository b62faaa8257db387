"""Best of n by a judge of steps, such as one that `step_orlm` or `spark` trained."""

from bough.appraise import Verifications
from bough.search.best_of import BestOf
from bough.search.judge_path import JudgePath


def best_by_judge(n: int = 4, role: str = "judge", votes: int = 1, max_concurrent: int = 8) -> BestOf:
    """Best of n by a judge of steps, such as one that `step_orlm` or `spark` trained.

    Args:
        n: Number of paths; 4 in StepORLM.
        role: The role of the judge.
        votes: Number of verifications of a path.
        max_concurrent: Number of concurrent paths.

    Try: `bough search RUN 'best_by_judge()' models='{judge: FrozenCheckpoint(run=RUN, judge=true)}'`
    """
    judge = JudgePath(verifications=Verifications(role=role, n=votes))
    return BestOf(n=n, max_concurrent=max_concurrent, judge=judge, stop_value=None)
