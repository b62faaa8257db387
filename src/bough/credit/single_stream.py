"""Advantages against the tracked success rate of the task."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.needs import Need, estimate
from bough.piece import Above, piece
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns


@piece
class SingleStream:
    """Single-stream PO (arXiv 2509.13232): against the task's tracked success rate; no groups; needs a `Tracker`.

    With R the return of a path and p the success rate of its task, as tracked before the path was sampled:

        a = R - p        A = (a - mean of a) / (standard deviation of a, ddof 1, + epsilon), over the paths of the batch

    Paths of a task are not compared, so one path per task suffices, and a batch has as many tasks as paths. Of
    three tasks with tracked rates 0.5, 0.2 and 0.9:

        R    1     0     1
        a    0.5  -0.2   0.1
        A    1.044  -0.949  -0.095

    p is independent of the path, so the baseline adds no bias; the mean and the deviation of the batch add a little,
    and a success can get a negative advantage, like the third. A batch of one, and one of equal a, get 0.

    Segment PO (2505.23564) has the same initials and is another method.

    Attributes:
        epsilon: Added to the standard deviation, > 0.
    """

    # The rate is given from outside; the batch only centres and scales.
    compares: ClassVar[Literal["nothing"]] = "nothing"
    needs: ClassVar[frozenset[Need]] = frozenset({estimate("success_rate")})

    epsilon: Annotated[float, Above(0)] = 1e-8

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.of_paths(view)[view.path])

    def of_paths(self, view: PathView) -> Floats:
        """[P] float64: the advantage of each path of a batch."""
        first = np.cumsum([0, *(len(each.tree.token) for each in view.rewarded)])[view.tree]
        difference = view.returns - view.of_tokens("success_rate")[first]
        batch = np.zeros(len(difference), dtype=np.int64)
        return normalize(difference, batch, mean="group", std="group", epsilon=self.epsilon)
