"""Rewards from a potential of states: policy-invariant shaping, and raw gains."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.needs import Need, appraised
from bough.piece import AtLeast, Between, piece
from bough.tree import (
    Bools,
    Floats,
    Kind,
    Outcome,
    RewardRange,
    Tree,
    Verdict,
    appraisal_of,
    begins_turn,
    last_where,
    leaves,
    turn_start,
)


@piece
class PotentialShaping:
    """Channel "shaping": policy-invariant shaping (Ng, Harada and Russell 1999) by an appraiser's potential.

    A turn from the state s to s' is paid

        F = discount * P(s') - P(s),        P = 0 at the end of an episode; a truncated path keeps its last potential

    Discounted returns of paths from one state that end change by the same number, so the best policy stays the best.
    With discount .9, a path of five turns with the potentials 0, .2, .6, .45, .67 is paid .18, .34, -.195, .153, -.67,
    whose discounted sum is 0. Between whole paths of a task shaping makes no difference; it helps credit of steps.

    -P(s) is paid at the first node of the turn, discount * P(s') at the observation after it: with other observations
    after the same action the pay differs. The potential of a state is the mean of the values of the turns from it.

    Attributes:
        column: The appraiser's column, with a value for each turn: that of the state before it.
        discount: That of the credit rule, from 0 to 1; with another one the best policy may change.
        weight: Factor, >= 0.
    """

    column: str = "progress"
    discount: Annotated[float, Between(0, 1)] = 1.0
    weight: Annotated[float, AtLeast(0, "0 or more")] = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the appraiser's potential decides."""
        return {"shaping": RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the first node of each turn, and at observations.

        Raises:
            StageError: when a tree lacks the column.
        """
        return [{"shaping": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        value, known = state_potentials(tree, self.column, "PotentialShaping.column")
        begins = begins_turn(tree)
        paid = np.zeros(tree.nodes)
        paid[begins] = -value[tree.parent[begins]]
        inner = known & (np.arange(tree.nodes) > 0)
        paid[inner] += self.discount * value[inner]
        cut = leaves(tree)
        cut = cut[tree.outcome[cut] == Outcome.TRUNCATED]
        last = last_where(tree, known)[cut]
        paid[cut] += self.discount * np.where(known[last], value[last], 0.0)
        return paid


@piece
class PotentialGain:
    """Channel "gain": by how much a turn raised an appraiser's potential; IGPO's with `AnswerProbe`.

    A turn from the state s to s', in which the path goes on, is paid P(s') - P(s); the last turn of a path is paid
    nothing. Potentials .1, .4, .3 pay .3, -.1, 0. Unlike `PotentialShaping` it changes which policy is the best: a path
    that stops at a high potential earns it. IGPO (arXiv 2510.14967) has the probability of the true answer.

    Attributes:
        column: The appraiser's column, with a value for each turn: that of the state before it.
        weight: Factor, >= 0.
    """

    column: str = "probe"
    weight: Annotated[float, AtLeast(0, "0 or more")] = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the appraiser's potential decides."""
        return {"gain": RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the observations after turns.

        Raises:
            StageError: when a tree lacks the column.
        """
        return [{"gain": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        value, known = state_potentials(tree, self.column, "PotentialGain.column")
        before, paid = last_where(tree, known)[tree.parent], np.zeros(tree.nodes)
        gained = known & known[before]
        gained[0] = False
        paid[gained] = value[gained] - value[before[gained]]
        return paid


def state_potentials(tree: Tree, column: str, setting: str) -> tuple[Floats, Bools]:
    """[N] float64 and [N] bool: the potential of the state at each node that a turn begins from, and where it is known.

    An appraiser has a value for each turn, at its last node. The potential is their mean over the turns that begin at
    the node.

    Args:
        tree: The tree.
        column: Name of the appraiser's column.
        setting: The setting with this name, for messages.

    Raises:
        StageError: when the tree lacks the column.
    """
    appraisal = appraisal_of(tree, column, setting)
    place = tree.parent[turn_start(tree)]
    rated = (tree.kind == Kind.ACTION) & (appraisal.verdict == Verdict.OK)
    count = np.bincount(place[rated], minlength=tree.nodes)
    total = np.bincount(place[rated], appraisal.value[rated], minlength=tree.nodes)
    return total / np.maximum(count, 1), count > 0
