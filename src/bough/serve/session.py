"""A session: what one key of a server can do."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from hmac import compare_digest
from itertools import count
from typing import Protocol, runtime_checkable

from bough.engine import Completion, Engine, Request, Sampling
from bough.engine.engine import CompilesGrammars
from bough.grammar import Grammar
from bough.serve.conversation import Conversations
from bough.serve.errors import ApiError
from bough.tree import Message, Tool
from bough.usercode.origin import shorten

TOO_LONG = "context_length_exceeded"
"""OpenAI's code for a prompt that leaves no room for a token."""

ANY_MODEL = "policy"
"""The listed name of a model that has every name."""

MOST_LOGPROBS = 1_000_000
"""Most log-probabilities of an answer; one takes up to 70 bytes of it, and 500 bytes of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt to complete.

    Attributes:
        tokens: The prompt's tokens.
        sampling: How tokens are sampled.
        stop_tokens: Tokens that end the completion.
        seed: The request's seed; None without one.
        choice: The number of the completion among those of its request.
        messages: The prompt's messages; () outside of a chat.
        tools: The prompt's tools.
        stops: Strings before the first of which the client's text ends.
        most_calls: Most calls that the client gets, see `client_action`; None for any number.
        grammar: What the completion may be; None for anything.
        retry: How often the client has sent this request before.
    """

    tokens: tuple[int, ...]
    sampling: Sampling
    stop_tokens: tuple[int, ...]
    seed: int | None = None
    choice: int = 0
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    stops: Sequence[str] = ()
    most_calls: int | None = None
    grammar: Grammar | None = None
    retry: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The completion of a prompt, and what a guard decided about it.

    Attributes:
        completion: The completion.
        denied: Why its action is denied: the client gets this reason in place of the action. "" for an allowed one.
        number: Its number, by which `Session.answered` names it.
    """

    completion: Completion
    denied: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one key can do.

    Attributes:
        conversations: Its chats.
        complete: Completes a prompt; raises `ApiError` or `EngineFault`.
        check: Raises `ApiError` for a prompt of so many tokens.
        context_tokens: Most tokens of prompt and completion together.
        sampling: Sampling settings of requests that do not set them.
        models: The names of the model, the first is the answer's; () accepts every name.
        report: Receives the JSON of `POST /v1/outcome`; None where a server has no such path.
        answered: Receives the numbers of the completions of a request when its answer is ready and its client is there.
        refused: Receives the errors that its requests get as their answers.
    """

    conversations: Conversations
    complete: Callable[[Prompt], Awaitable[Completed]]
    check: Callable[[int], None]
    context_tokens: int
    sampling: Sampling
    models: tuple[str, ...] = ()
    report: Callable[[object], None] | None = None
    answered: Callable[[Sequence[int]], None] | None = None
    refused: Callable[[ApiError], None] | None = None

    @property
    def listed_models(self) -> tuple[str, ...]:
        """The names that a list of models has: at least one."""
        return self.models or (ANY_MODEL,)

    def model(self, name: str) -> str:
        """The name of the model in an answer.

        Raises:
            ApiError: 404 for another model.
        """
        if self.models and name not in self.models:
            known = ", ".join(self.models)
            raise ApiError(
                404, f"got model {shorten(name, 80)!r}; need one of: {known}", code="model_not_found", param="model"
            )
        return name


@runtime_checkable
class Sessions(Protocol):
    """The sessions of a server."""

    def find(self, key: str) -> Session | None:
        """The session of a key, "" for a request without one; None for a wrong key."""
        ...


def check_length(tokens: int, context_tokens: int) -> None:
    """Refuse a prompt without tokens, or one that leaves no room for a token.

    Args:
        tokens: The tokens of the prompt, or of a part that is too long.
        context_tokens: Most tokens of prompt and completion together.

    Raises:
        ApiError: 400; code "context_length_exceeded" for a prompt that is too long.
    """
    if not tokens:
        raise ApiError(400, "prompt: got no tokens; need at least one", param="prompt")
    if tokens >= context_tokens:
        raise ApiError(
            400,
            f"got a prompt of {tokens} tokens; need fewer than the model's maximum context length of "
            f"{context_tokens} tokens; send less of the conversation",
            code=TOO_LONG,
            param="messages",
        )


def check_logprobs(prompts: Sequence[Prompt], context_tokens: int) -> None:
    """Refuse prompts whose answer may have too many log-probabilities: of each token and its alternatives.

    Args:
        prompts: All prompts of a request.
        context_tokens: Most tokens of prompt and completion together.

    Raises:
        ApiError: 400.
    """
    most = sum(
        min(each.sampling.max_tokens, context_tokens - len(each.tokens)) * (1 + each.sampling.top_probs)
        for each in prompts
        if len(each.tokens) < context_tokens
    )
    if most > MOST_LOGPROBS:
        raise ApiError(
            400,
            f"logprobs: got a request for up to {most:,} log-probabilities in {len(prompts)} completions; need at most "
            f"{MOST_LOGPROBS:,}: lower max_tokens, n or the number of alternatives",
            param="logprobs",
        )


async def compile_grammar(engine: Engine, prompt: Prompt) -> None:
    """Compile the grammar of a prompt beside the engine's other work, within bounds, where the engine can.

    Raises:
        ApiError: 400 when llguidance is missing.
        ValueError: when it can't be read, or is too large or late.
        EngineFault: when the engine fails.
    """
    if prompt.grammar is not None and isinstance(engine, CompilesGrammars):
        try:
            await engine.compile_grammar(prompt.grammar, prompt.stop_tokens)
        except ModuleNotFoundError as missing:
            raise ApiError(400, str(missing), code="grammar_unavailable") from missing


class EngineSession:
    """The only session of a server of one engine; with the key "" it is open to requests with any key."""

    def __init__(
        self, engine: Engine, conversations: Conversations, *, models: tuple[str, ...], sampling: Sampling, key: str
    ) -> None:
        self._engine, self._key, self._numbers = engine, key, count()
        self._session = Session(
            conversations=conversations,
            complete=self._complete,
            check=partial(check_length, context_tokens=engine.context_tokens),
            context_tokens=engine.context_tokens,
            sampling=sampling,
            models=models,
        )

    def find(self, key: str) -> Session | None:
        """See `Sessions`."""
        # A key of the command line may have bytes of no encoding.
        known = self._key.encode("utf-8", "surrogateescape")
        return self._session if not known or compare_digest(key.encode("utf-8", "surrogateescape"), known) else None

    async def _complete(self, prompt: Prompt) -> Completed:
        check_length(len(prompt.tokens), self._engine.context_tokens)
        await compile_grammar(self._engine, prompt)
        seed = next(self._numbers) if prompt.seed is None else prompt.seed
        mixed = int.from_bytes(blake2b(f"{seed} {prompt.choice}".encode(), digest_size=8).digest(), "big")
        request = Request(
            prompt_tokens=prompt.tokens,
            sampling=prompt.sampling,
            stop_tokens=prompt.stop_tokens,
            seed=mixed,
            grammar=prompt.grammar,
        )
        return Completed(completion=await self._engine.generate(request))
