"""The budget of a tree: an operation starts only if its worst-case cost fits."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

from bough.rollout.agent import Limits
from bough.tree import TruncatedBy


class BudgetExceeded(Exception):
    """The worst-case cost of an operation does not fit the tree's budget, so it did not start.

    Attributes:
        budget: The limit that it would exceed.
    """

    def __init__(self, budget: TruncatedBy) -> None:
        name = budget.name.lower()
        super().__init__(f"got an operation that exceeds Limits.{name}; need a larger limit, or a cheaper explorer")
        self.budget = budget


@dataclass(slots=True, kw_only=True)
class Usage:
    """Resources that an operation uses, or may use at most.

    Attributes:
        turns: Environment steps, replayed ones included.
        tokens: Sampled tokens.
        calls: Engine requests: completions, scores and values, each once.
    """

    turns: int = 0
    tokens: int = 0
    calls: int = 0

    def add(self, other: "Usage", sign: int = 1) -> None:
        """Add `sign` times the other usage to this one."""
        for each in fields(Usage):
            setattr(self, each.name, getattr(self, each.name) + sign * getattr(other, each.name))


class Budget:
    """The resources that one tree has used and reserved.

    Each operation reserves its maximum cost while it runs, and is charged its real cost when it ends. An operation that
    does not fit beside the reservations waits. An operation that would not fit if all of them cost nothing raises
    `BudgetExceeded`. So no budget is exceeded, and no budget is left unused because of a reservation.

    Attributes:
        spent: Usage of the finished operations.
        replayed: Number of replayed turns in `spent`.
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
    async def reserve(self, most: Usage) -> AsyncGenerator[Usage, None]:
        """Reserve `most` while a block runs; the usage that the block adds to the yielded `Usage` is charged.

        Raises:
            BudgetExceeded: when `most` does not fit a budget.
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

    def fits(self, most: Usage) -> bool:
        """Whether `most` would fit the budgets without any reservation."""
        return not self._short(most, Usage())

    def _short(self, most: Usage, held: Usage) -> TruncatedBy:
        """The first limit that `most` would exceed beside `held`, or `NOTHING`."""
        for name in ("turns", "tokens", "calls"):
            limit: int | None = getattr(self._limits, f"tree_{name}")
            requested: int = getattr(most, name)
            if limit is not None and requested and getattr(self.spent, name) + getattr(held, name) + requested > limit:
                return TruncatedBy[f"TREE_{name.upper()}"]
        return TruncatedBy.NOTHING

    def _wake(self) -> None:
        """Wake all waiting operations in the order of their arrival; each checks the budget again."""
        woken, self._waiting = self._waiting, []
        for turn in woken:
            if not turn.done():
                turn.set_result(None)
