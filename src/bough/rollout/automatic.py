"""The turns of seats that explorers do not act for: frozen models and scripts."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bough.env.script import Script
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.cursor import Cursor
from bough.rollout.seats import SeatAgent
from bough.tree import AgentAction, Kind, Outcome
from bough.tree.seeds import derive
from bough.usercode.origin import describe


class TakeTurn(Protocol):
    """Takes one turn."""

    def __call__(
        self, cursor: Cursor, *, action: AgentAction | None = None
    ) -> Awaitable[tuple[Cursor | Outcome, int | None]]:
        """The next cursor or the outcome of the path, and the node of the action if there is one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticSeats:
    """Takes the turns of automatic seats; `Rollout` calls it after every other turn.

    Attributes:
        seats: The agents, by seat.
        builder: The tree.
        seed: Seed of the tree.
        turn: Takes a turn.
    """

    seats: Mapping[str, SeatAgent]
    builder: TreeBuilder
    seed: int
    turn: TakeTurn

    @property
    def some(self) -> bool:
        """Whether a seat is automatic."""
        return any(each.automatic for each in self.seats.values())

    async def play(self, after: Cursor | Outcome, node: int) -> tuple[Cursor | Outcome, int]:
        """Take turns up to that of another seat, or to the end of the path.

        Args:
            after: The position.
            node: The node there.

        Returns:
            The last position or the outcome of the path, and the node there.
        """
        while isinstance(after, Cursor) and self.seats[after.state.seat].automatic:
            node = after.node
            agent = self.seats[after.state.seat].agent
            after, acted = await (self._scripted(agent, after) if isinstance(agent, Script) else self.turn(after))
            node = node if acted is None else acted
        return after, node

    async def _scripted(self, script: Script, cursor: Cursor) -> tuple[Cursor | Outcome, int | None]:
        try:
            action = script.act(cursor.state, derive(self.seed, "script", *cursor.branches))
        except Exception as error:
            seat = [*self.seats].index(cursor.state.seat)
            fault: dict[str, object] = {"fault": f"{type(script).__name__}.act raised {describe(error)}"}
            failed = NodeDraft(parent=cursor.node, kind=Kind.ACTION, outcome=Outcome.FAILED, seat=seat, info=fault)
            return Outcome.FAILED, self.builder.add(failed)
        return await self.turn(cursor, action=action)
