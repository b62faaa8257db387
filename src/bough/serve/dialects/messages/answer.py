"""A message as the answer to a request."""

from hashlib import blake2b
from typing import Any
from uuid import uuid4

from bough.engine import FinishReason
from bough.serve.choice import Choice
from bough.serve.dialects.usage import usage_of


def message_of(model: str, choice: Choice) -> dict[str, Any]:
    """The message of an answer; of a denied one the client gets the reason alone."""
    usage = usage_of([choice])
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": _blocks(choice),
        "stop_reason": _stop_reason(choice),
        "stop_sequence": choice.stop or None,
        "usage": {
            "input_tokens": usage.read,
            "output_tokens": usage.sampled,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _stop_reason(choice: Choice) -> str:
    if choice.denied:
        return "refusal"
    if choice.completion.finish is FinishReason.LENGTH:
        return "max_tokens"
    if choice.stop:
        return "stop_sequence"
    return "tool_use" if choice.said.tool_calls else "end_turn"


def _blocks(choice: Choice) -> list[dict[str, Any]]:
    said, blocks = choice.said, list[dict[str, Any]]()
    if said.thinking:
        # Clients return it with the thinking; it has no other use here.
        signature = blake2b(said.thinking.encode("utf-8", "replace"), digest_size=32).hexdigest()
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": signature})
    if said.content:
        blocks.append({"type": "text", "text": said.content})
    for call in said.tool_calls:
        blocks.append({"type": "tool_use", "id": call.call_id, "name": call.name, "input": dict(call.arguments)})
    return blocks
