"""Engines: tokens in, tokens out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bough.tree.needs import ENTROPIES, MEAN_TURN_ENTROPY, Need

if TYPE_CHECKING:
    from torch import Tensor


class Finish(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """A stop token was sampled; it is the last token."""
    LENGTH = "length"
    """`max_tokens`, or the end of the model's context, was reached."""
    ABORTED = "aborted"
    """The engine gave up on the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        max_tokens: Most tokens of one completion, > 0.
        temperature: Divides the logits, >= 0; 0 takes the most likely token (log-probability 0, entropy 0).
        top_p: Keeps the smallest set of most likely tokens whose probability reaches it, in (0, 1].
        entropies: Whether completions carry entropies.
        alternatives: How many of the most likely tokens a completion says at each place, with their probabilities;
            not every engine can.
    """

    max_tokens: int = 32
    temperature: float = 1.0
    top_p: float = 1.0
    entropies: bool = True
    alternatives: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"Sampling.max_tokens: got {self.max_tokens}; need at least 1")
        if self.temperature < 0:
            raise ValueError(f"Sampling.temperature: got {self.temperature}; need 0 (greedy) or more")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"Sampling.top_p: got {self.top_p}; need a number above 0 and at most 1")
        if self.alternatives < 0:
            raise ValueError(f"Sampling.alternatives: got {self.alternatives}; need 0 (none) or more")

    @property
    def gives(self) -> frozenset[Need]:
        """Entropies, when completions carry them."""
        return frozenset({ENTROPIES, MEAN_TURN_ENTROPY} if self.entropies else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One completion to make.

    Attributes:
        prompt_tokens: What is read, at least one token.
        sampling: How tokens are drawn.
        stop_tokens: Tokens that end the completion and are kept as its last token.
        seed: The draw depends on this, the prompt and the weights alone, not on what else is being decoded.
    """

    prompt_tokens: tuple[int, ...]
    sampling: Sampling
    stop_tokens: tuple[int, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What was sampled, n tokens.

    Attributes:
        tokens: n vocabulary ids.
        logprobs: n natural logs of the probability under the distribution really sampled from (temperature, top-p);
            None when the engine cannot say: a path it wrote can be searched and imitated, not reinforced.
        entropies: n entropies of that distribution in nats; None when not asked for, or when the engine cannot say.
        finish: Why it ended.
        policy_version: How many weight updates the sampling weights had seen.
        alternatives: For each of the n tokens the most likely ones at its place, most likely first, each with its
            probability under the raw distribution: temperature 1, no top-p. None when not asked for.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    entropies: tuple[float, ...] | None
    finish: Finish
    policy_version: int
    alternatives: tuple[tuple[tuple[int, float], ...], ...] | None = None


class EngineFault(Exception):
    """The engine broke on a request. The path becomes `FAILED`; the episode is retried."""


@runtime_checkable
class Engine(Protocol):
    """Anything that completes token sequences."""

    @property
    def policy_version(self) -> int:
        """How many weight updates the engine's weights have seen."""
        ...

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Complete one prompt. Many calls may be in flight; they are batched.

        Raises:
            ValueError: when the prompt leaves no room for a token; says both lengths. When asked for alternatives
                that this engine cannot say.
            EngineFault: when the engine broke.
        """
        ...

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """Log-probability of each continuation token (no top-p)."""
        ...

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """`score` several continuations of one prompt in one request; one tuple each, in their order."""
        ...

    def sync(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """Take new weights, copied; nothing may be in flight. Cached keys and values of old weights are dropped."""
        ...

    def forget(self) -> None:
        """Drop cached keys and values; nothing may be in flight. What follows computes as after a fresh start."""
        ...

    async def close(self) -> None:
        """Let go of everything. Safe to call twice."""
        ...


@runtime_checkable
class Caching(Protocol):
    """An engine that keeps keys and values in the memory of the policy's device."""

    @property
    def cache_tokens(self) -> int:
        """Most tokens whose keys and values it keeps."""
        ...

    @property
    def cached_tokens(self) -> int:
        """Tokens whose keys and values it keeps now."""
        ...


# Last, because every piece imports the protocol from above. None needs torch before it is built.
from bough.engine.local import Local  # noqa: E402
from bough.engine.openai import OpenAi  # noqa: E402
from bough.engine.scripted import Mishap, Scripted  # noqa: E402

__all__ = [
    "Caching",
    "Completion",
    "Engine",
    "EngineFault",
    "Finish",
    "Local",
    "Mishap",
    "OpenAi",
    "Request",
    "Sampling",
    "Scripted",
]
