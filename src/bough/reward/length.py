"""A penalty per turn on successful paths."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.tree import Floats, RewardRange, Tree, turns
from bough.tree.endings import success_reward_nodes


@piece
class Length:
    """Channel "length": each turn of a path with `success` at its leaf costs a little, paid at the last action.

    Where an unsolved path or one with later actions goes through that action too, it is paid at the leaf.
    Failed paths cost nothing: a penalty on slow failures would teach fast failures.

    Attributes:
        per_turn: Cost of one turn, >= 0.
    """

    per_turn: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 0.01

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """At most nothing; the turns of a path have no bound here."""
        return {"length": RewardRange(high=0, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `success_reward_nodes`: the last action of each solved path, or its leaf."""
        return [{"length": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        nodes = success_reward_nodes(tree)
        paid = np.zeros(tree.nodes, dtype=np.float64)
        # `0.0 -` keeps a path of no turns, and a penalty of zero, at plus zero.
        paid[nodes] = 0.0 - self.per_turn * turns(tree)[nodes]
        return paid
