"""An engine: tokens in, sampled tokens and their log-probabilities out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

from bough.grammar import Grammar
from bough.needs import ENTROPIES, MEAN_TURN_ENTROPY, Need
from bough.piece import AtLeast, Between, Numbers, piece
from bough.varying import FloatOrSchedule

if TYPE_CHECKING:
    from torch import Tensor


LEAST_TEMPERATURE = 1e-5
"""Least temperature above 0: logits divided by less may overflow, and their softmax is greedy anyway."""


TEMPERATURE = Numbers(
    f"0 (greedy), or a finite number of at least {LEAST_TEMPERATURE}",
    lambda value: value == 0 or LEAST_TEMPERATURE <= value < math.inf,
)
"""The bounds of a temperature, which divides logits."""


class FinishReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """A stop token was sampled; it is the last token."""
    LENGTH = "length"
    """`max_tokens`, or the end of the model's context, was reached."""
    ABORTED = "aborted"
    """The engine aborted the request."""


@piece
class Sampling:
    """How tokens are sampled.

    Attributes:
        max_tokens: Most tokens of one completion, > 0.
        temperature: Divides the logits, a number or a schedule; 0 takes the most likely token (log-probability 0,
            entropy 0), others are at least `LEAST_TEMPERATURE`.
        top_p: Keeps the smallest set of most likely tokens whose probability reaches it, in (0, 1]; 1 in training.
        entropies: Whether completions carry entropies.
        top_probs: Number of most likely tokens that a completion lists at each position, with their probabilities;
            some engines support only 0.
    """

    max_tokens: Annotated[int, AtLeast(1)] = 32
    temperature: Annotated[FloatOrSchedule, TEMPERATURE] = 1.0
    top_p: Annotated[float, Between(0, 1, "a number above 0 and at most 1", above=True)] = 1.0
    entropies: bool = True
    top_probs: Annotated[int, AtLeast(0, "0 (none) or more")] = 0

    @property
    def gives(self) -> frozenset[Need]:
        """Entropies, when completions carry them."""
        return frozenset({ENTROPIES, MEAN_TURN_ENTROPY} if self.entropies else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for one completion.

    Attributes:
        prompt_tokens: The prompt, at least one token.
        sampling: How tokens are sampled.
        stop_tokens: Tokens that end the completion and are kept as its last token.
        seed: The completion depends only on the seed, the prompt and the weights, not on other requests.
        grammar: What the completion may be; None for anything. Some engines support only None.
        begun_tokens: Number of tokens at the end of the prompt that the grammar counts as part of the completion.
    """

    prompt_tokens: tuple[int, ...]
    sampling: Sampling
    stop_tokens: tuple[int, ...]
    seed: int
    grammar: Grammar | None = None
    begun_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A sampled completion of n tokens.

    Attributes:
        tokens: n vocabulary ids.
        logprobs: n natural logs of the probability under the sampling distribution (after grammar, temperature, top-p);
            None when the engine does not compute them: such a path can be searched and imitated, not reinforced.
        entropies: n entropies of that distribution in nats; None when not requested, or not computed.
        finish: Why the completion ended.
        policy_version: The number of weight updates of the weights that sampled the first token. An engine with
            `InFlightUpdates` may sample later tokens from newer weights; `logprobs` are those of the weights that
            sampled each token.
        top_probs: For each of the n positions the most likely tokens, most likely first, each with its probability
            under the raw distribution: temperature 1, no top-p. None when not requested.
        allowed: For each of the n positions the set of tokens that the grammar allowed: token t is bit t % 8 of byte
            t // 8; None for all, as of a script. None without a grammar, or from an engine that does not know one.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    entropies: tuple[float, ...] | None
    finish: FinishReason
    policy_version: int
    top_probs: tuple[tuple[tuple[int, float], ...], ...] | None = None
    allowed: tuple[bytes | None, ...] | None = None


class EngineFault(Exception):
    """An engine failed on a request. The path becomes `FAILED`; the episode is retried."""


@runtime_checkable
class Engine(Protocol):
    """Anything that completes token sequences."""

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the engine's weights."""
        ...

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Complete one prompt. Many calls may be in flight; they are batched.

        Raises:
            ValueError: when the prompt leaves no room for a token; the message has both lengths. When the engine does
                not support `top_probs`. When the grammar can't be read or followed.
            EngineFault: when the engine fails.
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

    def load_weights(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """Copy new weights in and drop the KV cache of the old ones; no request may be in flight."""
        ...

    def reset_cache(self) -> None:
        """Drop the KV cache; no request may be in flight. Later requests compute as in a new engine."""
        ...

    async def close(self) -> None:
        """Release all resources. Safe to call twice."""
        ...


def refuse_grammar(request: Request, engine: str) -> None:
    """Refuse a request with a grammar, before a token is sampled.

    Args:
        request: The request.
        engine: The name of an engine whose server may restrict tokens, but does not return the allowed ones.

    Raises:
        ValueError: when the request has a grammar.
    """
    if request.grammar is not None:
        raise ValueError(
            f"got a restricted answer (a forced call, a format, a parser with a grammar) with engine={engine}, whose "
            "server does not return the tokens that a grammar allowed, so a learner can't renormalise over them; need "
            "engine=Local(), or leave the answer free"
        )


@runtime_checkable
class CompilesGrammars(Protocol):
    """An engine that can compile a client's grammar beside its other work."""

    async def compile_grammar(self, grammar: Grammar, stop_tokens: Sequence[int]) -> None:
        """Compile a grammar in a thread, within bounds; `generate` then finds it.

        Raises:
            ModuleNotFoundError: when llguidance is missing.
            ValueError: when it can't be read, or is too large or late.
            EngineFault: when the engine fails.
        """
        ...


@runtime_checkable
class Busy(Protocol):
    """Measures its own working time: an engine, an environment's host."""

    @property
    def busy_s(self) -> float:
        """Working time in seconds since its creation."""
        ...


@runtime_checkable
class PerProcessScoring(Protocol):
    """An engine of several processes, each with weights or a KV cache of its own."""

    async def score_each_process(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...]
    ) -> Mapping[int, tuple[float, ...]]:
        """`Engine.score` of each process that serves requests, by its number."""
        ...


@runtime_checkable
class Passing(Protocol):
    """Counts its forward passes: an engine in this process or in worker processes."""

    @property
    def passes(self) -> int:
        """Forward passes since its creation."""
        ...

    @property
    def sequences(self) -> int:
        """Sequences in these passes, each counted in every pass that computes it."""
        ...


@runtime_checkable
class Replacing(Protocol):
    """An engine that replaces its processes when they die or hang."""

    @property
    def replaced(self) -> int:
        """Number of processes replaced so far."""
        ...


@runtime_checkable
class InFlightUpdates(Protocol):
    """An engine that may load weights and drop its KV cache while completions are in flight."""

    @property
    def updates_in_flight(self) -> bool:
        """Whether completions in flight are allowed then; they continue under the new weights, without old keys."""
        ...


@runtime_checkable
class ThreadLoading(Protocol):
    """An engine whose `load_weights` may run in a thread beside its event loop, while no request is in flight."""

    @property
    def loads_in_thread(self) -> bool:
        """Whether `load_weights` may run in a thread."""
        ...


@runtime_checkable
class AdapterLoading(Protocol):
    """An engine that may apply a policy's adapters itself, without merged weights."""

    @property
    def loads_adapters(self) -> bool:
        """Whether `load_weights` takes the weights of `Adapters` in place of the model's."""
        ...


@runtime_checkable
class Sleeping(Protocol):
    """An engine that may free the policy's device while the policy learns. No request may be in flight then."""

    @property
    def sleeps(self) -> bool:
        """Whether it frees the device; `sleep` and `wake` do nothing otherwise."""
        ...

    def sleep(self) -> None:
        """Free the device and drop the KV cache. Safe to call twice."""
        ...

    def wake(self) -> None:
        """Take the memory again, with the same weights. Safe to call twice."""
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

    def bound_cache(self, tokens: int) -> None:
        """Limit the cache to `tokens`, unless the settings have a limit.

        Raises:
            RuntimeError: when requests are in flight.
        """
        ...
