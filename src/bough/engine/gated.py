"""An engine whose weights are loaded while trees grow."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bough.engine.adapted_policy import AdaptedPolicy
from bough.engine.engine import AdapterLoading, Completion, Engine, InFlightUpdates, Request, Sleeping, ThreadLoading

if TYPE_CHECKING:
    from torch import Tensor

    from bough.engine.model import ServedPolicy


class GatedEngine:
    """Separates the requests to an engine from the loading of its weights.

    Requests run concurrently. While weights are loaded none is in flight: those in flight end first, new ones wait. So
    all tokens of a completion come from the weights of one version. Completions of an engine with `InFlightUpdates` do
    not wait, and continue under the new weights; only scores wait.
    """

    def __init__(self, engine: Engine) -> None:
        """Send requests to `engine`."""
        self._engine = engine
        self._in_flight = isinstance(engine, InFlightUpdates) and engine.updates_in_flight
        self._requests = 0
        self._loading = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def engine(self) -> Engine:
        """The engine behind, whose requests do not wait; for use in `loading`."""
        return self._engine

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the engine's weights."""
        return self._engine.policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._engine.context_tokens

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`; waits while weights are loaded, unless the engine has `InFlightUpdates`."""
        if self._in_flight:
            return await self._engine.generate(request)
        async with self._request():
            return await self._engine.generate(request)

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`; waits while weights are loaded."""
        async with self._request():
            return await self._engine.score(prompt_tokens, continuation_tokens, temperature)

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`; waits while weights are loaded."""
        async with self._request():
            return await self._engine.score_each(prompt_tokens, continuations, temperature)

    @asynccontextmanager
    async def loading(self) -> AsyncGenerator[None]:
        """The time in which weights may be loaded; waits until no request is in flight that must end before."""
        while self._loading:
            await self._change()
        self._loading = True
        try:
            while self._requests:
                await self._change()
            yield
        finally:
            self._loading = False
            self._wake()

    def load_weights(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """See `Engine.load_weights`; call it in `loading`."""
        self._engine.load_weights(weights, policy_version)

    @property
    def loads_in_thread(self) -> bool:
        """Whether `load_weights` may run in a thread, in `loading`."""
        return not self._in_flight and isinstance(self._engine, ThreadLoading) and self._engine.loads_in_thread

    def weights_of(self, policy: "ServedPolicy") -> "Mapping[str, Tensor]":
        """The tensors of a policy that the engine loads: all weights, or the adapters alone where it takes them."""
        adapters = None
        if isinstance(self._engine, AdapterLoading) and self._engine.loads_adapters:
            adapters = policy.adapters() if isinstance(policy, AdaptedPolicy) else None
        return policy.weights() if adapters is None else adapters.weights

    def load_policy(self, policy: "ServedPolicy", policy_version: int) -> None:
        """Load `weights_of` a policy; call it in `loading`."""
        self._engine.load_weights(self.weights_of(policy), policy_version)

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`."""
        self._engine.reset_cache()

    @property
    def sleeps(self) -> bool:
        """See `Sleeping`."""
        return isinstance(self._engine, Sleeping) and self._engine.sleeps

    def sleep(self) -> None:
        """See `Sleeping.sleep`."""
        if isinstance(self._engine, Sleeping):
            self._engine.sleep()

    def wake(self) -> None:
        """See `Sleeping.wake`."""
        if isinstance(self._engine, Sleeping):
            self._engine.wake()

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._engine.close()

    @asynccontextmanager
    async def _request(self) -> AsyncGenerator[None]:
        while self._loading:
            await self._change()
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._wake()

    async def _change(self) -> None:
        """Wait for the end of a request, or of a loading."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
