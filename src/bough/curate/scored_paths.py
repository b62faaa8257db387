"""The filter of paths by the scores of their turns."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.curate.filter import FilterResult
from bough.needs import Need, appraised
from bough.piece import AtLeast, piece
from bough.tree import (
    Credited,
    Floats,
    PathScore,
    Verdict,
    appraisal_of,
    exclude_leaves,
    groups,
    path_score,
    path_view,
)


@piece
class ScoredPaths:
    """Keeps the paths whose turns an appraiser scores highly, such as a learned reward for imitation.

    The score of a path is the mean, the minimum, the last or the product of its turns' values in a column, such as the
    one of `StepScores`. Paths below `min_score` are removed from the batch, and of the others of a task all but the
    best `max_paths`. With turns of .9 .5, .8 .8 and .9 .9, by="min" and min_score=.6 the last two stay, with
    max_paths=1 the last. Advantages are computed before, so baselines include all paths. Groups without remaining paths
    are dropped under "low_score". ProRAG (arXiv 2601.21912) refines its policy by imitation of paths that its reward
    model scores highly.

    Try: `bough train grpo --on search appraisers='[StepScores(folder="prm")]' filters='[ScoredPaths()]'
    credit=Filtered objective=Imitation`

    Attributes:
        column: The appraiser's column, with a value for each turn.
        by: How the values of turns make the score of their path.
        min_score: Lowest score of a kept path.
        max_paths: Most paths of a task; None for all.
    """

    column: str = "reward_model"
    by: PathScore = "min"
    min_score: float = 0.5
    max_paths: Annotated[int | None, AtLeast(1)] = None

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Remove paths, and drop the groups that are then empty.

        Raises:
            StageError: when a tree lacks the column.
        """
        kept: list[Credited] = []
        dropped = 0
        for group in groups(credited):
            scores = [self._of_kept(each) for each in group]
            flat = np.concatenate(scores)
            good = flat >= self.min_score
            rank = np.empty(len(flat), dtype=np.int64)
            rank[np.argsort(np.where(good, -flat, np.inf), kind="stable")] = np.arange(len(flat))
            good &= rank < (len(flat) if self.max_paths is None else self.max_paths)
            parts = np.split(good, np.cumsum([len(each) for each in scores])[:-1])
            dropped += not good.any()
            for each, stays in zip(group, parts, strict=True):
                if stays.any():
                    kept.append(exclude_leaves(each, path_view([each.rewarded]).leaf[~stays]))
        return FilterResult(trees=tuple(kept), dropped={"low_score": dropped})

    def _of_kept(self, credited: Credited) -> Floats:
        """[P] float64: the scores, -inf for a path that an earlier filter removed."""
        leaf = path_view([credited.rewarded]).leaf
        return np.where(np.isin(leaf, credited.excluded_leaves), -np.inf, self.scores(credited))

    def scores(self, credited: Credited) -> Floats:
        """[P] float64: the score of each counted path; -inf for a path without a value.

        Raises:
            StageError: when the tree lacks the column.
        """
        tree, view = credited.tree, path_view([credited.rewarded])
        appraisal = appraisal_of(tree, self.column, "ScoredPaths.column")
        found = np.full(view.paths, -np.inf)
        for path in range(view.paths):
            nodes = view.node[view.start[path] : view.start[path + 1]]
            if len(nodes) and np.all(appraisal.verdict[nodes] == Verdict.OK):
                found[path] = path_score(appraisal.value[nodes].tolist(), self.by)
        return found
