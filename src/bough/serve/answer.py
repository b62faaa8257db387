"""The bodies of responses: chats, completions, streams of chunks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import log
from time import time
from typing import Any
from uuid import uuid4

from bough.context import Renderer
from bough.engine import Completion, FinishReason
from bough.serve.token_bytes import piece_bytes, token_bytes
from bough.tree import Message

DENIED = "content_filter"
"""OpenAI's finish reason of a completion that is withheld."""

WINDOW = 32
"""Tokens after which the text of a token does not depend on earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One completion of a request.

    Attributes:
        prompt_tokens: The tokens of its prompt.
        completion: The completion.
        message: The parsed message; None for a completion outside of a chat.
        text: The text before a stop string; None where the completion is whole.
        denied: Why a guard denied the action; "" for an allowed one.
    """

    prompt_tokens: tuple[int, ...]
    completion: Completion
    message: Message | None = None
    text: str | None = None
    denied: str = ""


def head(name: str, model: str) -> dict[str, Any]:
    """The first fields of a response; `name` is "chat.completion", "text_completion" or a chunk's."""
    return {"id": f"{name.partition('.')[0]}-{uuid4().hex}", "object": name, "created": int(time()), "model": model}


def usage(choices: Sequence[Choice], prompts: int = 1) -> dict[str, int]:
    """Counts of tokens; a prompt counts once, whatever its number of choices."""
    each = len(choices) // prompts
    prompt_tokens = sum(len(choice.prompt_tokens) for choice in choices[::each])
    sampled = sum(len(choice.completion.tokens) for choice in choices)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": sampled,
        "total_tokens": prompt_tokens + sampled,
    }


class TokenTexts:
    """The texts and bytes of single tokens of an answer, each decoded once: alternatives are mostly the same ones."""

    def __init__(self, renderer: Renderer) -> None:
        def text(token: int) -> str:
            return renderer.text([token])

        self.renderer, self.text, self.bytes = renderer, cache(text), cache(partial(piece_bytes, renderer))


def chat_choice(texts: TokenTexts, index: int, choice: Choice, *, logprobs: bool, token_ids: bool) -> dict[str, Any]:
    """A choice of a chat completion; of a denied one the client gets the reason alone."""
    if choice.denied:
        message = {"role": "assistant", "content": None, "refusal": choice.denied}
        found = {"index": index, "message": message, "finish_reason": DENIED, "logprobs": None}
        return found | ({"token_ids": []} if token_ids else {})
    found: dict[str, Any] = {
        "index": index,
        "message": _assistant(choice.message or Message(role="assistant", content="")),
        "finish_reason": _finish(choice),
        "logprobs": _chat_logprobs(texts, choice.completion) if logprobs else None,
    }
    return found | ({"token_ids": list(choice.completion.tokens)} if token_ids else {})


def text_choice(
    texts: TokenTexts, index: int, choice: Choice, *, logprobs: int | None, token_ids: bool, names: bool
) -> dict[str, Any]:
    """A choice of a completion; `names` writes tokens as "token_id:NUMBER". A denied one has no text."""
    if choice.denied:
        found = {"index": index, "text": "", "finish_reason": DENIED, "logprobs": None}
        return found | ({"token_ids": [], "prompt_token_ids": list(choice.prompt_tokens)} if token_ids else {})
    completion = choice.completion
    found: dict[str, Any] = {
        "index": index,
        "text": texts.renderer.text(completion.tokens) if choice.text is None else choice.text,
        "finish_reason": str(completion.finish),
        "logprobs": None if logprobs is None else _text_logprobs(texts, completion, names=names),
    }
    if token_ids:
        found |= {"token_ids": list(completion.tokens), "prompt_token_ids": list(choice.prompt_tokens)}
    return found


def chat_chunks(choices: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The choices of a chat's chunks: the role, then parts of the message, then the finish reason."""
    for choice in choices:
        message, index = choice["message"], choice["index"]
        yield _delta(index, {"role": "assistant", "content": ""})
        for word in (message["content"] or "").splitlines(keepends=True):
            yield _delta(index, {"content": word})
        if message["refusal"]:
            yield _delta(index, {"refusal": message["refusal"]})
        for number, call in enumerate(message.get("tool_calls", ())):
            yield _delta(index, {"tool_calls": [{"index": number, **call}]})
        last = _delta(index, {}) | {"finish_reason": choice["finish_reason"], "logprobs": choice["logprobs"]}
        yield last | ({"token_ids": choice["token_ids"]} if "token_ids" in choice else {})


def events(chunks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Server-sent events of chunks, with the end mark."""
    for chunk in chunks:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": None, "logprobs": None}


def _assistant(message: Message) -> dict[str, Any]:
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls
    ]
    found = {"role": "assistant", "content": message.content if message.content or not calls else None, "refusal": None}
    return found | ({"tool_calls": calls} if calls else {})


def _finish(choice: Choice) -> str:
    if choice.completion.finish is FinishReason.STOP and choice.message and choice.message.tool_calls:
        return "tool_calls"
    return str(choice.completion.finish)


def _shown(texts: TokenTexts, token: int, own: bytes) -> dict[str, Any]:
    return {"token": texts.text(token), "bytes": list(own)}


def _top(completion: Completion, place: int) -> list[tuple[int, float]]:
    """The most likely tokens at a position, with their log-probabilities."""
    listed = completion.top_probs[place] if completion.top_probs else ()
    return [(token, log(max(prob, 1e-45))) for token, prob in listed]


def _chat_logprobs(texts: TokenTexts, completion: Completion) -> dict[str, Any]:
    known = completion.logprobs or (0.0,) * len(completion.tokens)
    content = [
        _shown(texts, token, own)
        | {
            "logprob": logprob,
            "top_logprobs": [
                _shown(texts, other, texts.bytes(other)) | {"logprob": value}
                for other, value in _top(completion, place)
            ],
        }
        for place, (token, logprob, own) in enumerate(
            zip(completion.tokens, known, token_bytes(texts.renderer, completion.tokens), strict=True)
        )
    ]
    return {"content": content, "refusal": None}


def _text_logprobs(texts: TokenTexts, completion: Completion, *, names: bool) -> dict[str, Any]:
    def name(token: int) -> str:
        return f"token_id:{token}" if names else texts.text(token)

    return {
        "tokens": [name(token) for token in completion.tokens],
        "token_logprobs": None if completion.logprobs is None else list(completion.logprobs),
        "top_logprobs": [
            {name(token): value for token, value in _top(completion, place)} for place in range(len(completion.tokens))
        ],
        "text_offset": offsets(texts.renderer, completion.tokens),
    }


def offsets(renderer: Renderer, tokens: Sequence[int]) -> list[int]:
    """The number of characters before each token.

    A text is as much longer than its begin as their last tokens show, so that no text is decoded whole for each token.
    """
    found = [0]
    for known in range(0, len(tokens), WINDOW):
        first = max(known - WINDOW, 0)
        begin = found[known] - len(renderer.text(tokens[first:known]))
        places = range(known + 1, min(known + WINDOW, len(tokens)) + 1)
        found += [begin + len(renderer.text(tokens[first:place])) for place in places]
    return found[: len(tokens)]
