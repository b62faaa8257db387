"""A penalty for completions out of which no action can be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Floats, Kind, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Channel "format": paid off at each action that was not written in the agreed form (info `well_formed`).

    Attributes:
        penalty: What one such action costs, >= 0.
    """

    penalty: float = 0.1

    def __post_init__(self) -> None:
        if not self.penalty >= 0:
            raise ValueError(f"Format.penalty: got {self.penalty}; need 0 or more, it is subtracted")

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pay at `ACTION` nodes."""
        return [{"format": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        malformed = np.asarray([info.get("well_formed") is False for info in tree.info])
        return np.where((tree.kind == Kind.ACTION) & malformed, -self.penalty, 0.0)
