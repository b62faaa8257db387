"""Best-of-n: the best of several independent paths."""

import math
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.rollout.rollout import Rollout
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.score import known
from bough.search.tree import SearchTree


@piece
class BestOf:
    """Best-of-n: a verifier selects the best of n independent paths; by default the environment verifies.

    With `vote` the answer is the last action with the highest sum of values over the paths that end with it, by the
    shortest of these paths: MedS3's PRM-guided Vote-Sum (arXiv 2501.12051), and with equal values self-consistency
    (2203.11171). Paths that end a .6, b .4 and b .5 give b. The q of a path is that sum over the number of paths.

    A path that the judge gives no value is unjudged: it is counted, has no vote, and is the answer only if no other
    has a value. It stops when a path with a value of at least `stop_value` is found, or when a budget of the tree is
    exceeded.

    Attributes:
        n: Maximum number of paths.
        max_concurrent: Number of concurrent paths; 1 where the tree has a budget of its own.
        judge: Evaluates ended paths; None for 1 at the environment's success, else 0.
        vote: Whether paths with the same last action vote together; for tasks whose last action is the answer.
        stop_value: A path with this value is the last; None for all n paths.
    """

    n: Annotated[int, AtLeast(1)] = 8
    max_concurrent: Annotated[int, AtLeast(1)] = 8
    judge: Evaluate | None = None
    vote: bool = False
    stop_value: float | None = 1.0

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), success_value=None if self.judge else 1.0, failure_value=0.0)
        try:
            max_concurrent = 1 if rollout.budget.bounded else self.max_concurrent
            for begun in range(0, self.n, max_concurrent):
                count = min(max_concurrent, self.n - begun)
                some = await tree.together(tree.roll_out(tree.root) for _ in range(count))
                for end in (each for each in some if each is not None):
                    value = tree.end_value(end)
                    if value is None and self.judge is not None:
                        value = await tree.within_budget(self.judge(tree, end))
                    end.value = end.q = math.nan if value is None else value
                    end.unjudged = math.isnan(end.value) and not tree.spent
                    tree.rollout_ends.append(end)
                if tree.spent or (
                    self.stop_value is not None and any(end.value >= self.stop_value for end in tree.rollout_ends)
                ):
                    break
        finally:
            if self.vote:
                _vote(tree.rollout_ends)
            tree.store_results()


def _vote(ends: list[SearchNode]) -> None:
    """Set the q of each end to the sum of values of the ends with its last action, over all ends."""
    total: dict[str, float] = {}
    for end in ends:
        total[end.action] = total.get(end.action, 0.0) + known(end.value)
    for end in ends:
        end.q = math.nan if math.isnan(end.value) else total[end.action] / len(ends)
