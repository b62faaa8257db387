"""What a tree has cost so far: nobody may begin what the tree's budget can't pay for at its dearest."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

from bough.rollout.agent import Limits


class BudgetExceeded(Exception):
    """The budget of a tree can't pay for what was asked; nothing was done. `budget` names the limit that is short."""

    def __init__(self, budget: str) -> None:
        super().__init__(f"got no room left in Limits.{budget}; need more, or an explorer that asks for less")
        self.budget = budget


@dataclass(slots=True, kw_only=True)
class Usage:
    """What something costs, or may cost at most.

    Attributes:
        turns: Environment steps, replayed ones included.
        tokens: Sampled tokens.
        calls: Requests to the engine: completions, scores and values, each once.
    """

    turns: int = 0
    tokens: int = 0
    calls: int = 0

    def add(self, other: "Usage", sign: int = 1) -> None:
        """Add what something else costs, or take it back."""
        for each in fields(Usage):
            setattr(self, each.name, getattr(self, each.name) + sign * getattr(other, each.name))


class Budget:
    """The accounts of one tree.

    Whatever costs something is held at its dearest while it is under way, and entered at its real cost when it is
    done. What does not fit beside all that is held waits for its turn; what would not fit even if all that cost
    nothing is refused. So no budget is ever overdrawn, and none is left unused because of what might have been.

    Attributes:
        spent: What is done.
        replayed: How many of the turns were replayed ones.
    """

    def __init__(self, limits: Limits) -> None:
        self.spent = Usage()
        self.replayed = 0
        self._limits = limits
        self._held = Usage()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def bounded(self) -> bool:
        """Whether the tree has a budget of its own."""
        limits = self._limits
        return any(each is not None for each in (limits.tree_turns, limits.tree_tokens, limits.tree_calls))

    @asynccontextmanager
    async def holding(self, most: Usage) -> AsyncGenerator[Usage, None]:
        """Set `most` aside for as long as a block runs; what the block enters into the cost it gets is spent.

        Raises:
            BudgetExceeded: when a budget can't pay for it.
        """
        while self._short(most, self._held):
            if short := self._short(most, Usage()):
                raise BudgetExceeded(short)
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._held.add(most)
        cost = Usage()
        try:
            yield cost
        finally:
            self._held.add(most, -1)
            self.spent.add(cost)
            self._wake()

    def affords(self, most: Usage) -> bool:
        """Whether the budgets could pay for something if nothing else were under way."""
        return not self._short(most, Usage())

    def _short(self, most: Usage, held: Usage) -> str:
        """The name of the first limit that `most` would break beside what is `held`, or ""."""
        for name in ("turns", "tokens", "calls"):
            limit: int | None = getattr(self._limits, f"tree_{name}")
            asked: int = getattr(most, name)
            if limit is not None and asked and getattr(self.spent, name) + getattr(held, name) + asked > limit:
                return f"tree_{name}"
        return ""

    def _wake(self) -> None:
        """Let everybody who waits look again, in the order in which they came."""
        woken, self._waiting = self._waiting, []
        for turn in woken:
            if not turn.done():
                turn.set_result(None)
