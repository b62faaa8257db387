"""Generation by an OpenAI-compatible server: the settings and the engine."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Literal

from bough.engine.engine import Completion, EngineFault, FinishReason, Request, refuse_grammar
from bough.engine.messages import END, Messages, answered, conversation, offered
from bough.piece import Above, AtLeast, NotEmpty, piece
from bough.varying import constant
from bough.version import install

if TYPE_CHECKING:
    from torch import Tensor

    from bough.engine.calls import Choice, OpenAiClient
    from bough.engine.usage import ServerUsage

FINISHES = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.ABORTED,
    "abort": FinishReason.ABORTED,
    "error": FinishReason.ABORTED,
}
"""The finish reason for each `finish_reason` of a response."""

PLAIN = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Values that turn off sampling settings which the server otherwise takes from the model's configuration."""

SEEDS = 2**31
"""Upper bound of the seeds that every server accepts."""


@piece
class OpenAi:
    """Any OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama, OpenAI. Its weights are fixed.

    With `api="completions"` requests and responses are token ids (vLLM from 0.10.2, SGLang from July 2026), with
    log-probabilities: the completions can be trained on. With `api="chat"`, which every server supports, requests are
    messages and tools, and responses are text and calls without log-probabilities: they can be evaluated, searched and
    imitated, not reinforced.

    In the chat the agent uses the engine's own `renderer`, in which a token is a byte of text or a mark around a
    message or a call. `context_tokens`, `Sampling.max_tokens` and every budget count these tokens. A request limits
    the server to the same number of its own tokens; longer text is cut off. A reasoning model needs more
    (`extra={"max_tokens": 4096}`).

    A transient failure (a broken connection, a timeout, a malformed response, status 408, 409, 429 or 5xx) is retried
    after `backoff_s`, then twice that, and so on. Each wait varies by up to half, from the request's seed, and is at
    least the server's Retry-After. A waiting call still counts against `concurrency`, so a busy server gets fewer.

    Examples:
        `OpenAi(model="gpt-5-mini", key_env="OPENAI_API_KEY", base_url="https://api.openai.com/v1",
        limit="max_completion_tokens", extra={"temperature": None, "top_p": None})`

    Attributes:
        model: The model's name on the server.
        base_url: The server's address, as a rule up to and with /v1.
        api: The endpoint: chat completions or completions.
        key_env: The environment variable with the API key; None for a server without keys, as most local ones.
        context_tokens: Most tokens of prompt and completion together; about four bytes of text are one of the server's.
        concurrency: Most calls in flight; the others wait in order of arrival.
        retries: Most retries of a call.
        backoff_s: The wait before the first retry.
        deadline_s: The deadline of one attempt. A longer Retry-After counts as a failure.
        logprobs: The distribution of the server's log-probabilities: "raw" logits (vLLM), logits divided by the
            temperature (SGLang), or the sampling distribution (vLLM with --logprobs-mode processed_logprobs).
            Completions have log-probabilities only where it equals the sampling distribution.
        limit: The chat API's name for the maximum number of completion tokens.
        extra: Further fields of each request, which override the engine's; None removes a field.
        price_per_million: The price of a million prompt tokens and of a million completion tokens; for `usage`.
    """

    model: Annotated[str, NotEmpty("the name under which the server has the model")]
    base_url: str
    api: Literal["chat", "completions"] = "chat"
    key_env: str | None = None
    context_tokens: Annotated[int, AtLeast(2)] = 32768
    concurrency: Annotated[int, AtLeast(1)] = 64
    retries: Annotated[int, AtLeast(0)] = 4
    backoff_s: Annotated[float, AtLeast(0, "0 or more seconds")] = 0.5
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 100.0
    logprobs: Literal["raw", "tempered", "sampled"] = "raw"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    price_per_million: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"OpenAi.base_url: got {self.base_url!r}; need http://... or https://..., up to and with /v1"
            )
        if self.price_per_million is not None and not min(self.price_per_million) >= 0:
            raise ValueError(f"OpenAi.price_per_million: got {self.price_per_million}; need prices of 0 or more")

    @property
    def renderer(self) -> Messages | None:
        """The renderer of the chat; None with `api="completions"`, whose tokens are the model's own."""
        return Messages() if self.api == "chat" else None

    def build(self, policy: object = None) -> "OpenAiEngine":
        """Build an engine that calls the server, without a first call.

        Args:
            policy: The policy of a training run. Must be None: the server has its own weights.

        Raises:
            ImportError: when the openai package is not installed.
            ValueError: when there is a policy, or the environment variable `key_env` is not set.
        """
        if policy is not None:
            raise ValueError(
                f"engine=OpenAi: got a policy to sample from and the server at {self.base_url}, which keeps its own "
                "weights; need an engine in this process to train or evaluate a policy (Local)"
            )
        try:
            from bough.engine.calls import OpenAiClient
        except ImportError as error:
            raise ImportError(
                f"OpenAi needs openai, which can't be imported ({error}); do: {install('openai')}"
            ) from error
        key = "" if self.key_env is None else os.environ.get(self.key_env, "").strip()
        if self.key_env is not None and not key:
            raise ValueError(
                f"OpenAi.key_env: got {self.key_env!r}, which is not set in the environment; need a variable with the "
                f"server's key (export {self.key_env}=...), or None for a server without keys"
            )
        return OpenAiEngine(self, OpenAiClient(self, key))


class OpenAiEngine:
    """An engine that calls a server. Belongs to the event loop of its first call."""

    def __init__(self, config: OpenAi, calls: "OpenAiClient") -> None:
        self._config, self._calls = config, calls

    @property
    def policy_version(self) -> int:
        """Always 0: the server's weights are fixed."""
        return 0

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together; bytes of text in the chat."""
        return self._config.context_tokens

    @property
    def usage(self) -> "ServerUsage":
        """Total usage so far."""
        return self._calls.usage

    @property
    def renderer(self) -> Messages:
        """Turns text into the tokens of the chat, and back.

        Raises:
            ValueError: with `api="completions"`, whose tokens are the model's own.
        """
        if self._config.api != "chat":
            raise ValueError(
                "renderer: got api='completions', whose tokens are those of the server's model; need the renderer of "
                "that model, such as Pretrained(path=...).build(()).renderer, or api='chat'"
            )
        return Messages()

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`.

        Raises:
            ValueError: when the prompt leaves no room for a token or does not fit the API, or for top_probs or a
                grammar.
            EngineFault: when the server rejects the request or all attempts fail; the message has a remedy.
        """
        prompt_tokens, context_tokens = len(request.prompt_tokens), self._config.context_tokens
        if not 0 < prompt_tokens < context_tokens:
            raise ValueError(
                f"generate: got a prompt of {prompt_tokens} tokens; need at least 1 and fewer than the context of "
                f"{context_tokens} tokens; read less (a Window context) or raise OpenAi.context_tokens"
            )
        if request.sampling.top_probs:
            raise ValueError(
                f"Sampling.top_probs: got {request.sampling.top_probs} and a server, which says nothing of "
                "the raw distribution; need an engine in this process (Local)"
            )
        refuse_grammar(request, "OpenAi")
        if self._config.api == "chat":
            return await self._chat(request)
        return await self._complete(request)

    async def check(self) -> None:
        """See `Remote.check`."""
        await self._calls.check()

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`: `score_each` of one continuation."""
        return (await self.score_each(prompt_tokens, (continuation_tokens,), temperature))[0]

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`. Servers support temperature 1 only, and only with `api="completions"`.

        Raises:
            ValueError: for a temperature or an API without scores.
            EngineFault: when the server returns no scores or rejects the request, or all attempts fail.
        """
        if self._config.api == "chat":
            raise ValueError("score: got api='chat', which says nothing of given tokens; need api='completions'")
        if temperature != 1:
            raise ValueError(f"score: got temperature {temperature}; need 1, as servers score at temperature 1 only")
        if not prompt_tokens:
            raise ValueError("score: got a prompt of 0 tokens; need at least 1")
        reads = [[*prompt_tokens, *each] for each in continuations]
        longest = max(map(len, reads))
        if longest >= self._config.context_tokens:
            raise ValueError(
                f"score: got {longest} tokens; need fewer than the context of {self._config.context_tokens} tokens"
            )
        asked = {
            "prompt": reads[0] if len(reads) == 1 else reads,
            "max_tokens": 1,
            "echo": True,
            "logprobs": 1,
            "temperature": 1.0,
        }
        choices = await self._calls.ask_each("completions", self._body(asked | {"return_token_ids": True}), seed=0)
        if len(choices) != len(reads):
            raise EngineFault(
                f"score: got {len(choices)} answers from {self._config.base_url} to {len(reads)} prompts; need one each"
            )
        return tuple(
            self._scored(choice, len(prompt_tokens), len(read)) for choice, read in zip(choices, reads, strict=True)
        )

    def _scored(self, choice: "Choice", start: int, stop: int) -> tuple[float, ...]:
        """The log-probabilities of the tokens from `start` to `stop` of a scored prompt."""
        given = (choice.logprobs.token_logprobs if choice.logprobs else None) or []
        if len(given) < stop:
            raise EngineFault(
                f"score: got log-probabilities of {len(given)} tokens from {self._config.base_url}; need those "
                f"of all {stop} that were sent: a server that answers echo with them (vLLM, SGLang)"
            )
        return _known(given[start:stop])

    def load_weights(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """Raise a RuntimeError: a server's weights are fixed."""
        del weights
        raise RuntimeError(
            f"load_weights: got weights of version {policy_version} for the server at {self._config.base_url}, which "
            "keeps its own; need an engine in this process to train (Local), or save the policy and serve it"
        )

    def reset_cache(self) -> None:
        """Do nothing: the engine has no cache."""

    async def close(self) -> None:
        """See `Engine.close`. Calls in flight are cancelled and fail."""
        await self._calls.close()

    async def _chat(self, request: Request) -> Completion:
        """Complete by the chat API: the request has messages and tools, the response text and calls."""
        if request.stop_tokens != (END,):
            raise ValueError(
                f"generate: got stop tokens {request.stop_tokens}; need {(END,)}, the end of a message: take the "
                "engine's own renderer, Agent(renderer=engine.renderer, ...)"
            )
        sampling = request.sampling
        most = self._most(request)
        asked: dict[str, object] = {
            "messages": conversation(request.prompt_tokens),
            "tools": offered(request.prompt_tokens) or None,
            self._config.limit: most,
            "temperature": constant(sampling.temperature),
            "top_p": sampling.top_p,
            "seed": request.seed % SEEDS,
        }
        choice = await self._calls.ask("chat/completions", self._body(asked), seed=request.seed)
        finish, said = self._finish(choice), choice.said
        if finish is FinishReason.ABORTED:
            tokens: tuple[int, ...] = ()
        else:
            text = said.content or said.refusal or ""
            tokens, whole = answered(text, said.rows, most, ended=finish is FinishReason.STOP)
            finish = FinishReason.STOP if whole else FinishReason.LENGTH
        if finish is FinishReason.LENGTH and not tokens:
            raise EngineFault(
                f"{self._config.model} wrote no text within {most} tokens; a reasoning model needs "
                f"more: OpenAi.extra={{{self._config.limit!r}: 4096}}"
            )
        return Completion(tokens=tokens, logprobs=None, entropies=None, finish=finish, policy_version=0)

    async def _complete(self, request: Request) -> Completion:
        """Complete by the completions API: request and response have token ids."""
        sampling = request.sampling
        asked: dict[str, object] = {
            "prompt": list(request.prompt_tokens),
            "max_tokens": self._most(request),
            "temperature": constant(sampling.temperature),
            "top_p": sampling.top_p,
            "seed": request.seed % SEEDS,
            "stop_token_ids": list(request.stop_tokens),
            "logprobs": 1,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        choice = await self._calls.ask("completions", self._body(asked | PLAIN), seed=request.seed)
        finish = self._finish(choice)
        tokens = self._ids(choice)
        if not tokens and finish is not FinishReason.ABORTED:
            raise EngineFault(
                f"got a completion of no tokens from {self._config.base_url}, finished {finish}; need one"
            )
        return Completion(
            tokens=tokens,
            logprobs=self._logprobs(request, choice, tokens),
            entropies=None,
            finish=finish,
            policy_version=0,
        )

    def _most(self, request: Request) -> int:
        """The maximum number of completion tokens."""
        return min(request.sampling.max_tokens, self._config.context_tokens - len(request.prompt_tokens))

    def _body(self, asked: Mapping[str, object]) -> dict[str, object]:
        body = {"model": self._config.model, **asked, **self._config.extra}
        return {name: value for name, value in body.items() if value is not None}

    def _finish(self, choice: "Choice") -> FinishReason:
        finish = FINISHES.get(choice.finish_reason or "")
        if finish is None:
            raise EngineFault(
                f"got finish_reason {choice.finish_reason!r} from {self._config.base_url}; need one of {list(FINISHES)}"
            )
        return finish

    def _ids(self, choice: "Choice") -> tuple[int, ...]:
        """The completion's token ids from the response; text is never tokenised."""
        if choice.token_ids is not None:
            return tuple(choice.token_ids)
        names = (choice.logprobs.tokens if choice.logprobs else None) or []
        ids = [name.removeprefix("token_id:") for name in names if name.startswith("token_id:")]
        if not names or len(ids) != len(names) or not all(text.isdecimal() for text in ids):
            raise EngineFault(
                f"{self._config.base_url} says no token ids; need a server that does (vLLM from 0.10.2, SGLang from "
                "July 2026), or api='chat'"
            )
        return tuple(map(int, ids))

    def _logprobs(self, request: Request, choice: "Choice", tokens: tuple[int, ...]) -> tuple[float, ...] | None:
        """Log-probabilities under the sampling distribution; None where the server's have another one."""
        sampling, kind = request.sampling, self._config.logprobs
        if sampling.temperature == 0:
            return (0.0,) * len(tokens)
        if kind != "sampled" and (sampling.top_p < 1 or (kind == "raw" and sampling.temperature != 1)):
            return None
        given = (choice.logprobs.token_logprobs if choice.logprobs else None) or []
        if len(given) != len(tokens):
            raise EngineFault(
                f"got {len(given)} log-probabilities from {self._config.base_url} for {len(tokens)} tokens; need one"
            )
        return _known(given)


def _known(logprobs: list[float | None]) -> tuple[float, ...]:
    known = tuple(logprob for logprob in logprobs if logprob is not None)
    if len(known) < len(logprobs):
        raise EngineFault(
            f"got {len(logprobs) - len(known)} of {len(logprobs)} log-probabilities as null; need numbers"
        )
    return known
