"""The events of a streamed message."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bough.serve.choice import parts_of
from bough.serve.dialects.event import named_event


def message_events(message: Mapping[str, Any]) -> Iterator[str]:
    """Server-sent events of a message: its begin, each block, its end.

    Args:
        message: The whole message.
    """
    begun: dict[str, Any] = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    begun |= {"usage": {**message["usage"], "output_tokens": 0}}
    yield named_event("message_start", {"message": begun})
    yield named_event("ping", {})
    for index, block in enumerate(message["content"]):
        empty, deltas = _deltas(block)
        yield named_event("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            yield named_event("content_block_delta", {"index": index, "delta": delta})
        yield named_event("content_block_stop", {"index": index})
    end = {name: message[name] for name in ("stop_reason", "stop_sequence")}
    yield named_event("message_delta", {"delta": end, "usage": message["usage"]})
    yield named_event("message_stop", {})


def _deltas(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block without its content, and the parts of the content."""
    if block["type"] == "text":
        parts = [{"type": "text_delta", "text": part} for part in parts_of(block["text"])]
        return {**block, "text": ""}, parts
    if block["type"] == "thinking":
        parts = [{"type": "thinking_delta", "thinking": part} for part in parts_of(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*parts, signed]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
