"""Advantages from comparing only paths of the same structure."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.keys import group_by
from bough.credit.marks import marked, need_of
from bough.credit.normalize import normalize
from bough.needs import Need
from bough.piece import Above, Between, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns


@piece
class StratifiedGrpo:
    """Stratified GRPO (arXiv 2510.06214): compares paths of a task with equally many turns, or tool calls.

    A path with two searches is not comparable with one without: a mean over both contains an offset between them.
    With z the z-score (ddof 1) within a group:

        A_p = blend * z(R_p; task, stratum) + (1 - blend) * z(R_p; task)

    The stratum is the number of turns of a path or, with `mark`, the number of its turns with the mark, such as
    the search calls in the paper. One task:

        returns       1       0       1       1       0       0
        stratum       1       1       2       2       2       3
        blend=1   0.707  -0.707   0.577   0.577  -1.155       0
        blend=0.8 0.748  -0.748   0.644   0.644  -1.106  -0.183

    A path alone in its stratum gets 0 from it; the blend is for such small strata. A path alone
    in its task, or of a tied task, gets 0. The authors' code was not found; ddof 1 and the default
    of `blend` are choices made here.

    Attributes:
        mark: The stratum counts the turns with this true annotation: "call" for calls of tools, "call:search" for
            those of one tool ("valid" and "well_formed" always exist); None counts all turns.
        blend: Weight of the comparison within the stratum, in [0, 1].
        epsilon: Added to the standard deviation, > 0.
    """

    mark: str | None = None
    blend: Annotated[float, Between(0, 1)] = 0.8
    epsilon: Annotated[float, Above(0)] = 1e-6

    @property
    def needs(self) -> frozenset[Need]:
        """The mark, when it comes from a parser."""
        return frozenset[Need]() if self.mark is None else need_of(self.mark)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.advantages(view.returns, view.task, self._stratum(view))[view.path])

    def advantages(self, returns: Floats, task: Ints, stratum: Ints) -> Floats:
        """[n] float64: the advantages of n paths with the given returns, tasks and strata of any kind."""
        own = normalize(returns, group_by(task, stratum), std="group", epsilon=self.epsilon)
        whole = normalize(returns, task, std="group", epsilon=self.epsilon)
        return self.blend * own + (1.0 - self.blend) * whole

    def _stratum(self, view: PathView) -> Ints:
        if self.mark is None:
            return view.turns
        return np.bincount(view.path[marked(view, self.mark)], minlength=view.paths)
