"""Value targets of actions and of their kinds, from the values of a search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bough.credit.head_targets import head_targets
from bough.credit.searched import Searched
from bough.needs import Need, value_head
from bough.tree import Credited, Floats, PathView, Rewarded, Source, join, path_view


@dataclass(frozen=True, slots=True, kw_only=True)
class KindValues:
    """CR-Planner's critics (arXiv 2410.01428): values of a search for each action, and for the kind of each action.

    The target at the last token of an action is its q, as in `Searched(target="action")`. An action whose beginning was
    forced has a kind (`SampleKinds`): the target at its first sampled token, after the beginning, is the mean q of
    the actions with this beginning, weighted by their visits: q .8 with 3 visits and .2 with 1 give .65.
    Where the two tokens are the same, the action's q stays.

    Advantages are those of `Searched`.

    Attributes:
        head: Name of the value head, as `SampleKinds(best=True)` and `CriticRating` use it.
    """

    head: str = "value"

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic with this head."""
        return frozenset({value_head(self.head)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        rule = Searched(head=self.head, target="action")
        kind = self.of_kinds(view, rule.scores(view))
        token = head_targets(self.head, "state", view, before=kind, after=kind)[self.head]
        found: list[Credited] = []
        start = 0
        for each in rule(rewarded):
            at_end = each.value_targets[self.head]
            stop = start + len(at_end)
            both = np.where(np.isnan(at_end), token[start:stop], at_end)
            found.append(replace(each, value_targets={self.head: both}))
            start = stop
        return found

    def of_kinds(self, view: PathView, score: Floats) -> Floats:
        """[S]: the mean `score` [S] of the actions of each turn's kind; nan for actions without one."""
        forced = join(view.rewarded, "source")[view.first] == Source.FORCED
        # A turn on several paths counts once.
        node, at = np.unique(view.node, return_index=True)
        weight = np.maximum(1, join(view.rewarded, "visits")[node]).astype(np.float64)
        total, count = np.zeros(len(view.through)), np.zeros(len(view.through))
        np.add.at(total, view.first[at], weight * score[at])
        np.add.at(count, view.first[at], weight)
        mean = total[view.first] / np.maximum(count[view.first], 1)
        return np.where(forced & (view.first != view.node), mean, np.nan)
