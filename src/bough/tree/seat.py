"""The seats of an episode with several agents, as columns of a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree.marks import Ternary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """One seat: its payoffs and its success in a tree with N nodes.

    Attributes:
        name: The seat's name in the environment.
        payoff: [N] float64, the seat's reward for the action of each `ACTION` node, whichever seat acted; 0 elsewhere.
        success: [N] int8, a `Ternary`: whether the seat succeeded at the end of a path.
    """

    name: str
    payoff: NDArray[np.floating]
    success: NDArray[np.signedinteger]

    def take(self, nodes: NDArray[np.signedinteger]) -> "Seat":
        """The columns of some nodes."""
        return Seat(name=self.name, payoff=self.payoff[nodes], success=self.success[nodes])

    def record(self) -> dict[str, object]:
        """The seat as JSON data: payoffs other than 0 and known successes, by node."""
        payoff = {str(node): float(self.payoff[node]) for node in np.flatnonzero(self.payoff).tolist()}
        known = np.flatnonzero(self.success != Ternary.UNKNOWN).tolist()
        return {"name": self.name, "payoff": payoff, "success": {str(node): int(self.success[node]) for node in known}}

    @staticmethod
    def read(record: Mapping[str, Any], nodes: int) -> "Seat":
        """The seat of `record` in a tree of `nodes` nodes."""
        payoff, success = np.zeros(nodes), np.full(nodes, Ternary.UNKNOWN, dtype=np.int8)
        for node, value in record["payoff"].items():
            payoff[int(node)] = value
        for node, value in record["success"].items():
            success[int(node)] = value
        return Seat(name=record["name"], payoff=payoff, success=success)


def check_seats(seats: Sequence[Seat], seat: NDArray[np.signedinteger]) -> None:
    """Check the seats of a tree against its column `seat` [N].

    Raises:
        ValueError: when they do not fit.
    """
    nodes = len(seat)
    for each in seats:
        if each.payoff.shape != (nodes,) or each.success.shape != (nodes,):
            raise ValueError(f"Tree.seats: got columns of {len(each.payoff)} nodes for {each.name!r}; need {nodes}")
    if np.any(seat < 0) or np.any(seat >= max(1, len(seats))):
        raise ValueError(f"Tree.seat: got numbers up to {int(seat.max())}; need indices of the {len(seats)} seats")
