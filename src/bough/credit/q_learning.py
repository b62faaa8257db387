"""Q-learning targets from the ratings of a search over actions."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.head_targets import head_targets
from bough.credit.success import succeeded
from bough.needs import Need, value_head
from bough.piece import Between, piece
from bough.tree import Credited, Floats, Outcome, PathView, Rewarded, Ternary, join, path_view, spread_turns


@piece
class QLearning:
    """Q-learning of the turns that are left after an action (A* Search Without Expansions, arXiv 2102.04518).

    The target of an executed action, for the head at its last token, with discount g:

        success 1      any other end 0      else g * max over the next actions of g ^ (their turns to go)

    The turns to go of the next actions, executed or not, are minus their ratings when the tree grew: those of the
    network before the update, the paper's target network. In turns: 0 at success, else 1 + the least of the next ones.
    With discount .9 and next actions rated -1 and -3: .9 * .9 = .81, 2 turns.

    Actions that were not executed, or after which nothing was rated, have no target. A turn's advantage is its target.

    Attributes:
        head: Name of the value head, used by `CriticRating(discount=...)`.
        discount: Discount of a turn, in (0, 1).
    """

    head: str = "value"
    discount: Annotated[float, Between(0, 1, "a number between 0 and 1", above=True, below=True)] = 0.9

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic with this head."""
        return frozenset({value_head(self.head)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        target = self.targets(view)
        value_targets = head_targets(self.head, "action", view, before=target, after=target)
        return spread_turns(view, np.nan_to_num(target, nan=0.0), value_targets)

    def targets(self, view: PathView) -> Floats:
        """[S] float64: the target of each turn; nan without one."""
        rating = join(view.rewarded, "rating")[view.node]
        inner = np.flatnonzero(view.path[:-1] == view.path[1:])
        best = np.full(len(view.through), -np.inf)
        rated = inner[~np.isnan(rating[inner + 1])]
        np.maximum.at(best, view.node[rated], rating[rated + 1])
        target = np.where(np.isfinite(best), self.discount ** (1 - best), np.nan)[view.node]
        ended = join(view.rewarded, "outcome")[view.leaf] == Outcome.TERMINATED
        executed = join(view.rewarded, "valid")[view.node] != Ternary.UNKNOWN
        at_end = view.last & ended[view.path]
        target[at_end] = succeeded(view)[view.path[at_end]]
        return np.where(executed, target, np.nan)
