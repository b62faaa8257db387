"""Conservative policy iteration: weights of a mixture of the policy and of its greedy improvement."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.branches import place_of, value_after
from bough.credit.keys import group_by
from bough.credit.normalize import ROUNDING
from bough.piece import Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class ConservativeMixture:
    """Conservative policy iteration (Kakade and Langford, 2002; agnostic RL, arXiv 2507.04406): imitates a mixture.

    For `MixtureKl`, with trees that have several actions in a state. With pi the policy and g the policy that takes the
    action of highest Q, a step of conservative policy iteration is

        (1 - eta) pi + eta g

    which is a step of Frank-Wolfe: g is the policy to which the return rises fastest. Q of an action is the mean return
    of its paths. Of n actions of a state, samples of pi, each has the weight 1 - eta, and the m best share eta * n:

        Q          1    0    0    .5        eta .3:    1.9   .7   .7   .7        mean 1

    Imitation with these weights has its minimum, over all policies, at the mixture with the best of n samples. Actions
    of a state with equal values, or with one action, have the weight 1: without them the batch would only have states
    in which samples differ, where bad actions are more frequent than in the policy.

    Attributes:
        eta: Share of the greedy policy, in (0, 1].
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    eta: Annotated[float, Between(0, 1, above=True)] = 0.3

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        _, first, which = np.unique(view.node, return_index=True, return_inverse=True)
        q = value_after(view, view.returns)[first]
        place = group_by(place_of(view)[first])
        count = np.bincount(place)
        highest = np.full(len(count), -np.inf)
        np.maximum.at(highest, place, q)
        best = q >= highest[place] - ROUNDING * (1 + np.abs(highest[place]))
        shared = np.bincount(place, weights=best, minlength=len(count))
        weight = 1 - self.eta + self.eta * best * (count / np.maximum(shared, 1))[place]
        return spread_turns(view, weight[which])
