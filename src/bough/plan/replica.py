"""A simulated engine replica: continuous batching, prefix reuse, a cache of limited size.

    submit --> waiting --> joins the next pass, if a slot and cache tokens are free --> decode steps --> done

A pass computes the new tokens of the turns that join, and one token of each running turn; new tokens have no limit.
Events are changes of the batch: all passes between two changes are one event.
"""

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from bough.plan.events import Clock
from bough.plan.workload import TurnWork


class EngineRates(Protocol):
    """Seconds of the passes of an engine."""

    def pass_s(self, *, new_tokens: int, joined: int, decoding: int, pairs: float, context_tokens: float) -> float:
        """Seconds of a pass.

        Args:
            new_tokens: Tokens of turns that join.
            joined: Number of these turns.
            decoding: Running turns, with one token each.
            pairs: Pairs of a query and a visible key.
            context_tokens: Tokens of the contexts of all turns.
        """
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class TurnRequest:
    """A turn of a tree at a replica.

    Attributes:
        tree: Identifies the tree.
        turn: Index of the turn in its tree.
        work: Its work.
        prompt_tokens: Tokens of the tree's prompt.
        branches: Number of turns that follow it; their contexts extend its own.
        extra_s: Seconds before its pass in which the engine computes nothing.
        done: Called at the end.
    """

    tree: Hashable
    turn: int
    work: TurnWork
    prompt_tokens: int
    branches: int
    extra_s: float
    done: Callable[[], None]

    @property
    def own_tokens(self) -> int:
        """Cache tokens of the turn at its end, without the tree's prompt."""
        return max(self.work.context_tokens - self.prompt_tokens, 0) + self.work.sampled_tokens


class Cache:
    """Cached tokens: the prompts of live trees, running turns, and turns that wait for their environment.

    The least recently used waiting turns are dropped when running turns need room. Their next turn computes its whole
    context again.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self._used = 0
        self._prompts: dict[Hashable, int] = {}
        self._paused: OrderedDict[tuple[Hashable, int], list[int]] = OrderedDict()  # tokens, turns that follow

    def admit(self, request: TurnRequest, *, alone: bool) -> int | None:
        """Reserve the tokens of a turn; returns the tokens to compute, None if there is no room.

        Args:
            request: The turn.
            alone: Whether no other turn runs; then it is admitted in any case.
        """
        prompt = 0 if request.tree in self._prompts else request.prompt_tokens
        need = request.own_tokens + prompt
        key = (request.tree, request.work.parent)
        known = self._paused.get(key)
        if known is not None:
            self._paused.move_to_end(key)
        while self._used + need > self.tokens and self._paused:
            oldest = next(iter(self._paused))
            if oldest == key:
                break
            self._used -= self._paused.pop(oldest)[0]
        freed = known[0] if known is not None and known[1] == 1 else 0
        if self._used + need - freed > self.tokens and not alone:
            return None
        if known is not None:
            known[1] -= 1
            if not known[1]:
                self._used -= self._paused.pop(key)[0]
        self._used += need
        self._prompts.setdefault(request.tree, request.prompt_tokens)
        missing = request.work.parent >= 0 and known is None
        whole = max(request.work.context_tokens - request.prompt_tokens, 1)
        return prompt + (whole if missing else request.work.new_tokens)

    def release(self, request: TurnRequest) -> None:
        """Turn the tokens of a finished turn into those of a waiting one, or free them at the end of a path."""
        if request.branches:
            self._paused[request.tree, request.turn] = [request.own_tokens, request.branches]
        else:
            self._used -= request.own_tokens

    def drop(self, tree: Hashable) -> None:
        """Free the prompt of a finished tree."""
        self._used -= self._prompts.pop(tree, 0)


class Replica:
    """An engine with one copy of the weights.

    Attributes:
        load: Turns that wait or run.
        busy_s: Seconds of passes.
        computed_tokens: New tokens computed so far.
        sampled_tokens: Tokens sampled so far.
    """

    def __init__(self, clock: Clock, rates: EngineRates, *, slots: int, cache_tokens: int) -> None:
        self.load, self.busy_s, self.computed_tokens, self.sampled_tokens = 0, 0.0, 0, 0
        self.cache = Cache(cache_tokens)
        self._clock, self._rates, self._slots = clock, rates, slots
        self._waiting: deque[TurnRequest] = deque()
        self._running: list[tuple[int, int, TurnRequest]] = []  # a heap by the step of the end
        self._steps = self._number = self._context = 0
        self._plan = 0  # number of the planned end of a pass; earlier ones are void
        self._began, self._step_s, self._ends = 0.0, 0.0, 0  # the present decode steps
        self._mode, self._pass_end = "idle", 0.0

    def submit(self, request: TurnRequest) -> None:
        """Add a turn."""
        self.load += 1
        self._waiting.append(request)
        if self._mode == "idle":
            self._next()
        elif self._mode == "decode" and len(self._running) < self._slots:
            passed = self._begun_steps()
            if passed < self._ends:
                self._decode(passed, self._began + passed * self._step_s - self._clock.now)

    def pass_left_s(self) -> float:
        """Seconds until the end of the present pass; 0 without one."""
        if self._mode == "join":
            return self._pass_end - self._clock.now
        if self._mode == "decode":
            return self._began + self._begun_steps() * self._step_s - self._clock.now
        return 0.0

    def _begun_steps(self) -> int:
        """Decode steps begun since the batch changed, at least one."""
        return max(1, math.ceil((self._clock.now - self._began) / self._step_s)) if self._step_s else 1

    def _next(self) -> None:
        """Begin the next passes: one with the turns that join, or all until a running turn ends."""
        admitted, turns = self._admitted(), len(self._running)
        if admitted:
            self._join(admitted)
        elif self._running:
            self._mode, self._began = "decode", self._clock.now
            steps = self._running[0][0] - self._steps
            context = self._context + turns * steps / 2
            self._step_s = self._rates.pass_s(
                new_tokens=0, joined=0, decoding=turns, pairs=context, context_tokens=context
            )
            self._decode(steps, steps * self._step_s)
        else:
            self._mode = "idle"

    def _join(self, admitted: list[tuple[TurnRequest, int]]) -> None:
        """Begin a pass with turns that join and one token of each running turn."""
        self._mode = "join"
        new_tokens = sum(new for _, new in admitted)
        pairs = sum(new * (request.work.context_tokens - new / 2) for request, new in admitted)
        context = self._context + sum(request.work.context_tokens for request, _ in admitted)
        seconds = self._rates.pass_s(
            new_tokens=new_tokens,
            joined=len(admitted),
            decoding=len(self._running),
            pairs=pairs + self._context,
            context_tokens=context,
        )
        self.busy_s += seconds
        self.computed_tokens += new_tokens
        left_s = seconds + sum(request.extra_s for request, _ in admitted)
        self._pass_end = self._clock.now + left_s
        self._clock.after(left_s, self._joined, [request for request, _ in admitted])

    def _decode(self, steps: int, seconds: float) -> None:
        self._plan += 1
        self._ends = steps
        self._clock.after(max(seconds, 0.0), self._decoded, self._plan)

    def _admitted(self) -> list[tuple[TurnRequest, int]]:
        found: list[tuple[TurnRequest, int]] = []
        while self._waiting and len(self._running) + len(found) < self._slots:
            new = self.cache.admit(self._waiting[0], alone=not self._running and not found)
            if new is None:
                break
            found.append((self._waiting.popleft(), new))
        return found

    def _joined(self, admitted: list[TurnRequest]) -> None:
        self._advance(1)
        for request in admitted:
            # This pass sampled the first token.
            left = request.work.sampled_tokens - 1
            self.sampled_tokens += min(request.work.sampled_tokens, 1)
            if left > 0:
                self._number += 1
                heapq.heappush(self._running, (self._steps + left, self._number, request))
                self._context += request.work.context_tokens + 1
            else:
                self._finish(request)
        self._next()

    def _decoded(self, plan: int) -> None:
        if plan != self._plan:
            return
        self.busy_s += self._ends * self._step_s
        self._mode = "ending"
        self._advance(self._ends)
        self._next()

    def _advance(self, steps: int) -> None:
        """Add some tokens to each running turn; finish the turns that are complete."""
        self._steps += steps
        self.sampled_tokens += steps * len(self._running)
        self._context += steps * len(self._running)
        while self._running and self._running[0][0] <= self._steps:
            request = heapq.heappop(self._running)[2]
            self._context -= request.work.context_tokens + request.work.sampled_tokens
            self._finish(request)

    def _finish(self, request: TurnRequest) -> None:
        self.load -= 1
        self.cache.release(request)
        request.done()
