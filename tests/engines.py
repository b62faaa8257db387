"""Engines that stand in front of another one: to listen, to disturb, to fail."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from bough.engine import Completion, Engine, Local, Request
from bough.engine.model import ServedPolicy


class Front:
    """Passes everything on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def policy_version(self) -> int:
        return self.engine.policy_version

    @property
    def context_tokens(self) -> int:
        return self.engine.context_tokens

    async def generate(self, request: Request) -> Completion:
        return await self.engine.generate(request)

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        return await self.engine.score(prompt_tokens, continuation_tokens, temperature)

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        return await self.engine.score_each(prompt_tokens, continuations, temperature)

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        self.engine.load_weights(weights, policy_version)

    def reset_cache(self) -> None:
        self.engine.reset_cache()

    async def close(self) -> None:
        await self.engine.close()


class Recorder(Front):
    """Remembers what was read and what was written."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.heard: list[tuple[Request, Completion]] = []

    async def generate(self, request: Request) -> Completion:
        completion = await self.engine.generate(request)
        self.heard.append((request, completion))
        return completion


class Unsynced(Front):
    """Weights get lost on the way."""

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        if policy_version == 0:
            self.engine.load_weights(weights, policy_version)


class Other(Front):
    """Runs with the weights of another model."""

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        self.engine.load_weights({name: weight * 1.2 for name, weight in weights.items()}, policy_version)


class Coarse(Front):
    """Rounds as bfloat16 does on a large model: an error in proportion to the log-probability."""

    async def score(self, prompt: Sequence[int], continuation: Sequence[int]) -> tuple[float, ...]:
        return tuple(0.96 * logprob for logprob in await self.engine.score(prompt, continuation))


class Late(Front):
    """Answers in an order of its own."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        super().__init__(engine)
        self.chance = chance

    async def generate(self, request: Request) -> Completion:
        for _ in range(self.chance.randrange(12)):
            await asyncio.sleep(0)
        return await self.engine.generate(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fronted:
    """A front before a `Local`."""

    front: Callable[[Engine], Engine]
    local: Local = Local(slots=32)

    def build(self, policy: ServedPolicy) -> Engine:
        return self.front(self.local.build(policy))
