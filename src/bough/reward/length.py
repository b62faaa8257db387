"""A penalty per turn on successful paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.checks import check_finite
from bough.tree import Floats, PayRange, Tree, turns
from bough.tree.endings import success_reward_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Channel "length": each turn of a path with `success` at its leaf costs a little, paid at the last action.

    Where an unsolved path or one with later actions goes through that action too, it is paid at the leaf.
    Failed paths cost nothing: a penalty on slow failures would teach fast failures.

    Attributes:
        per_turn: Cost of one turn, >= 0.
    """

    per_turn: float = 0.01

    def __post_init__(self) -> None:
        if not self.per_turn >= 0:
            raise ValueError(f"Length.per_turn: got {self.per_turn}; need 0 or more, it is subtracted")
        check_finite(self)

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """At most nothing; the turns of a path have no bound here."""
        return {"length": PayRange(high=0, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `success_reward_nodes`: the last action of each solved path, or its leaf."""
        return [{"length": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        nodes = success_reward_nodes(tree)
        paid = np.zeros(tree.nodes, dtype=np.float64)
        # `0.0 -` keeps a path of no turns, and a penalty of zero, at plus zero.
        paid[nodes] = 0.0 - self.per_turn * turns(tree)[nodes]
        return paid
