"""One answer of a request, and the log-probabilities of its tokens."""

from dataclasses import dataclass
from functools import cache, partial
from math import log
from typing import Any

from bough.context import Renderer
from bough.engine import Completion
from bough.serve.thinking import ThinkingMessage
from bough.serve.token_bytes import piece_bytes, token_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One completion of a request.

    Attributes:
        prompt_tokens: The tokens of its prompt.
        completion: The completion.
        message: The parsed message; None for a completion outside of a chat.
        text: The text before a stop string; None where the completion is whole.
        stop: That stop string; "" where the completion is whole.
        denied: Why a guard denied the action; "" for an allowed one.
    """

    prompt_tokens: tuple[int, ...]
    completion: Completion
    message: ThinkingMessage | None = None
    text: str | None = None
    stop: str = ""
    denied: str = ""

    @property
    def said(self) -> ThinkingMessage:
        """The message; of a denied one the client gets the reason alone."""
        return self.message or ThinkingMessage(role="assistant", content=self.denied)


def parts_of(text: str) -> list[str]:
    """The parts of a text in a stream: its lines."""
    return text.splitlines(keepends=True)


class TokenTexts:
    """The texts and bytes of single tokens of an answer, each decoded once: alternatives are mostly the same ones."""

    def __init__(self, renderer: Renderer) -> None:
        def text(token: int) -> str:
            return renderer.text([token])

        self.renderer, self.text, self.bytes = renderer, cache(text), cache(partial(piece_bytes, renderer))


def token_logprobs(texts: TokenTexts, completion: Completion) -> list[dict[str, Any]]:
    """The log-probability of each token of a completion, with the most likely ones at its position."""
    known = completion.logprobs or (0.0,) * len(completion.tokens)
    return [
        _shown(texts, token, own)
        | {
            "logprob": logprob,
            "top_logprobs": [
                _shown(texts, other, texts.bytes(other)) | {"logprob": value} for other, value in top(completion, place)
            ],
        }
        for place, (token, logprob, own) in enumerate(
            zip(completion.tokens, known, token_bytes(texts.renderer, completion.tokens), strict=True)
        )
    ]


def top(completion: Completion, place: int) -> list[tuple[int, float]]:
    """The most likely tokens at a position, with their log-probabilities."""
    listed = completion.top_probs[place] if completion.top_probs else ()
    return [(token, log(max(prob, 1e-45))) for token, prob in listed]


def _shown(texts: TokenTexts, token: int, own: bytes) -> dict[str, Any]:
    return {"token": texts.text(token), "bytes": list(own)}
