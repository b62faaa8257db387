"""The budget of a tree: an operation starts only if its worst-case cost fits."""

import asyncio
from bisect import insort
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import takewhile

from bough.env import Branching
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
        self.turns += sign * other.turns
        self.tokens += sign * other.tokens
        self.calls += sign * other.calls


@dataclass(slots=True, kw_only=True, eq=False)
class CallUsage:
    """Resources that one of several concurrent calls uses; or that the whole tree uses.

    Attributes:
        parent: The usage of the call around it; None for the tree.
        order: The places of the calls around it, and its own.
        left: What the call may still reserve; None where unknown.
        spent: Usage of its finished operations.
        reserved: Worst-case cost of its running operations.
        children: The usages of the calls that run inside it, in order.
        ended: Whether the call has ended.
    """

    parent: "CallUsage | None" = None
    order: tuple[int, ...] = ()
    left: Usage | None = None
    spent: Usage = field(default_factory=Usage)
    reserved: Usage = field(default_factory=Usage)
    children: "list[CallUsage]" = field(default_factory=list["CallUsage"])
    ended: bool = False

    def with_ancestors(self) -> "Generator[CallUsage]":
        """This usage, and those of all calls around it up to the tree."""
        here: CallUsage | None = self
        while here is not None:
            yield here
            here = here.parent


class Budget:
    """The resources that one tree has used and reserved.

    Each operation reserves its maximum cost while it runs, and is charged its real cost when it ends. Concurrent calls
    (`concurrent`) have an order. An operation starts as soon as it fits together with the worst-case cost that is left
    to the calls ahead. It raises `BudgetExceeded` when those have ended and it does not fit; until then it waits. So
    every operation has the result that it has where the calls run one after the other, and no budget is exceeded.

    Two operations of one call that run at a time have no order: one that does not fit beside the other waits for it.

    Where steps are replayed, which of two branches finds a live state depends on their order. So with `tree_turns` and
    such an environment, every call waits for the end of those ahead of it.

    Attributes:
        spent: Usage of the finished operations.
        replayed: Number of replayed turns in `spent`.
    """

    def __init__(self, limits: Limits, branching: Branching = Branching.COPY) -> None:
        self.replayed = 0
        self._in_turn = limits.tree_turns is not None and branching is not Branching.COPY
        self._tree = CallUsage()
        self.spent = self._tree.spent
        bounds = {"turns": limits.tree_turns, "tokens": limits.tree_tokens, "calls": limits.tree_calls}
        self._bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        self._present: ContextVar[CallUsage] = ContextVar("call", default=self._tree)
        self._waiting: list[_Waiting] = []

    @property
    def bounded(self) -> bool:
        """Whether the tree has a budget of its own."""
        return bool(self._bounds)

    @asynccontextmanager
    async def reserve(self, most: Usage) -> AsyncGenerator[Usage, None]:
        """Reserve `most` while a block runs; the usage that the block adds to the yielded `Usage` is charged.

        Raises:
            BudgetExceeded: when `most` does not fit a budget.
        """
        present = self._present.get()
        if short := await self._decided(present, most):
            raise BudgetExceeded(short)
        usages = [*present.with_ancestors()]
        for each in usages:
            each.reserved.add(most)
            if each.left is not None:
                each.left.add(most, -1)
                if min(each.left.turns, each.left.tokens, each.left.calls) < 0:
                    raise RuntimeError(
                        f"got a call that reserves {most}, which leaves {each.left}; need a true worst case"
                    )
        cost = Usage()
        try:
            yield cost
        finally:
            for each in usages:
                each.reserved.add(most, -1)
                each.spent.add(cost)
            self._wake()

    async def fits(self, most: Usage) -> bool:
        """Whether `most` fits the budgets, once the calls ahead leave no doubt; it is not reserved."""
        return not await self._decided(self._present.get(), most)

    def allows(self, most: Usage) -> bool:
        """Whether `most` fits the budgets beside all that has been spent."""
        return not self._exceeded(self._tree, most)

    @contextmanager
    def concurrent(self, most: Sequence[Usage | None]) -> Generator[list[CallUsage]]:
        """The usages of concurrent calls while a block runs.

        Args:
            most: The worst-case cost of each call, in their order; None where unknown.
        """
        parent = self._present.get()
        first = parent.children[-1].order[-1] + 1 if parent.children else 0
        left = [None if each is None or self._in_turn else replace(each) for each in most]
        opened = [
            CallUsage(parent=parent, order=(*parent.order, place), left=each)
            for place, each in enumerate(left, start=first)
        ]
        parent.children += opened
        try:
            yield opened
        finally:
            parent.children = [each for each in parent.children if each not in opened]
            self._wake()

    @asynccontextmanager
    async def within(self, call: CallUsage) -> AsyncGenerator[None]:
        """Charge the operations of a block to a call, which ends with the block.

        The block starts once no call ahead can exceed a budget, so that it finds what it would find after them.
        """
        await self._decided(call, None)
        token = self._present.set(call)
        try:
            yield
        finally:
            self._present.reset(token)
            call.ended, call.left = True, Usage()
            self._wake()

    async def _decided(self, call: CallUsage, most: Usage | None) -> TruncatedBy:
        """The result of `_verdict`, once it is known."""
        while (verdict := self._verdict(call, most)) is None:
            waiting = _Waiting(call=call, most=most, future=asyncio.get_running_loop().create_future())
            insort(self._waiting, waiting, key=lambda each: each.call.order)
            try:
                await waiting.future
            finally:
                self._waiting = [each for each in self._waiting if each is not waiting]
        return verdict

    def _verdict(self, call: CallUsage, most: Usage | None) -> TruncatedBy | None:
        """`NOTHING` where an operation of a call may start, or without `most` the call itself.

        The limit that it exceeds where it may not; None while that depends on calls ahead.
        """
        ahead = [*_ahead(call)]
        if all(self._fits_beside(call, ahead, most, name) for name in self._bounds):
            return TruncatedBy.NOTHING
        if any(not each.ended for each in ahead):
            return None
        return TruncatedBy.NOTHING if most is None else self._exceeded(call, most) or None

    def _fits_beside(self, call: CallUsage, ahead: Sequence[CallUsage], most: Usage | None, name: str) -> bool:
        """Whether an operation fits a budget beside the most that is used ahead of it in the end."""
        requested: int = 0 if most is None else getattr(most, name)
        if most is not None and not requested:
            return True
        total: int = getattr(self.spent, name) + getattr(self._tree.reserved, name) + requested
        for each in _behind(call):
            total -= getattr(each.spent, name) + getattr(each.reserved, name)
        for each in ahead:
            if each.left is None:
                return False
            total += getattr(each.left, name)
        return total <= self._bounds[name]

    def _exceeded(self, call: CallUsage, most: Usage) -> TruncatedBy:
        """The first limit that an operation would exceed beside all that has been spent, without the calls behind."""
        for name, bound in self._bounds.items():
            requested: int = getattr(most, name)
            spent: int = getattr(self.spent, name) - sum(getattr(each.spent, name) for each in _behind(call))
            if requested and spent + requested > bound:
                return TruncatedBy[f"TREE_{name.upper()}"]
        return TruncatedBy.NOTHING

    def _wake(self) -> None:
        """Wake the first waiting operations, up to one that is still undecided; each looks again."""
        while self._waiting and self._verdict(self._waiting[0].call, self._waiting[0].most) is not None:
            waiting = self._waiting.pop(0)
            if not waiting.future.done():
                waiting.future.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiting:
    """An operation of a call, or its start, that waits for the calls ahead."""

    call: CallUsage
    most: Usage | None
    future: asyncio.Future[None]


def _ahead(call: CallUsage) -> Generator[CallUsage]:
    """The calls ahead of a call, and ahead of those around it."""
    for here in call.with_ancestors():
        if here.parent is not None:
            yield from takewhile(lambda each, here=here: each is not here, here.parent.children)


def _behind(call: CallUsage) -> Generator[CallUsage]:
    """The calls behind a call, and behind those around it."""
    for here in call.with_ancestors():
        if here.parent is not None:
            yield from takewhile(lambda each, here=here: each is not here, reversed(here.parent.children))
