"""The choices of a chat completion, and its chunks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bough.engine import FinishReason
from bough.serve.choice import Choice, TokenTexts, parts_of, token_logprobs
from bough.serve.dialects.chunks import DENIED
from bough.serve.thinking import ThinkingMessage


def chat_choice(texts: TokenTexts, index: int, choice: Choice, *, logprobs: bool, token_ids: bool) -> dict[str, Any]:
    """A choice of a chat completion; of a denied one the client gets the reason alone."""
    if choice.denied:
        message = {"role": "assistant", "content": None, "refusal": choice.denied}
        found = {"index": index, "message": message, "finish_reason": DENIED, "logprobs": None}
        return found | ({"token_ids": []} if token_ids else {})
    shown = {"content": token_logprobs(texts, choice.completion), "refusal": None} if logprobs else None
    found: dict[str, Any] = {
        "index": index,
        "message": _assistant(choice.said),
        "finish_reason": _finish(choice),
        "logprobs": shown,
    }
    return found | ({"token_ids": list(choice.completion.tokens)} if token_ids else {})


def chat_chunks(choices: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The choices of a chat's chunks: the role, then parts of the message, then the finish reason."""
    for choice in choices:
        message, index = choice["message"], choice["index"]
        yield _delta(index, {"role": "assistant", "content": ""})
        for part in parts_of(message.get("reasoning_content", "")):
            yield _delta(index, {"reasoning_content": part})
        for part in parts_of(message["content"] or ""):
            yield _delta(index, {"content": part})
        if message["refusal"]:
            yield _delta(index, {"refusal": message["refusal"]})
        for number, call in enumerate(message.get("tool_calls", ())):
            yield _delta(index, {"tool_calls": [{"index": number, **call}]})
        last = _delta(index, {}) | {"finish_reason": choice["finish_reason"], "logprobs": choice["logprobs"]}
        yield last | ({"token_ids": choice["token_ids"]} if "token_ids" in choice else {})


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": None, "logprobs": None}


def _assistant(message: ThinkingMessage) -> dict[str, Any]:
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls
    ]
    found = {"role": "assistant", "content": message.content if message.content or not calls else None, "refusal": None}
    thinking = {"reasoning_content": message.thinking} if message.thinking else {}
    return found | thinking | ({"tool_calls": calls} if calls else {})


def _finish(choice: Choice) -> str:
    if choice.completion.finish is FinishReason.STOP and choice.said.tool_calls:
        return "tool_calls"
    return str(choice.completion.finish)
