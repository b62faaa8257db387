"""An engine whose completions are spans."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from bough.engine import Completion, Engine, Request
from bough.varying import constant

if TYPE_CHECKING:
    from torch import Tensor

MakesSpan: TypeAlias = Callable[[str, Mapping[str, Any]], AbstractContextManager[Any]]
"""Begins a span with a name and attributes, and ends it."""


class TracedEngine:
    """Makes a span of each completion; everything else is the engine's."""

    def __init__(self, engine: Engine, span: MakesSpan, model: str) -> None:
        """Send requests to `engine`, under the name of its model."""
        self._engine, self._span, self._model = engine, span, model

    @property
    def policy_version(self) -> int:
        """See `Engine`."""
        return self._engine.policy_version

    @property
    def context_tokens(self) -> int:
        """See `Engine`."""
        return self._engine.context_tokens

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        sampling = request.sampling
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "bough",
            "gen_ai.request.model": self._model,
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.temperature": float(constant(sampling.temperature)),
            "gen_ai.request.top_p": float(sampling.top_p),
            "gen_ai.request.seed": request.seed,
            "gen_ai.usage.input_tokens": len(request.prompt_tokens),
        }
        with self._span(f"chat {self._model}", attributes) as span:
            completion = await self._engine.generate(request)
            span.set_attribute("gen_ai.usage.output_tokens", len(completion.tokens))
            span.set_attribute("gen_ai.response.finish_reasons", (str(completion.finish),))
            span.set_attribute("bough.policy_version", completion.policy_version)
            return completion

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`."""
        return await self._engine.score(prompt_tokens, continuation_tokens, temperature)

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`."""
        return await self._engine.score_each(prompt_tokens, continuations, temperature)

    def load_weights(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """See `Engine.load_weights`."""
        self._engine.load_weights(weights, policy_version)

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`."""
        self._engine.reset_cache()

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._engine.close()
