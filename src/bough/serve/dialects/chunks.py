"""What answers of OpenAI's chats and completions share."""

import json
from collections.abc import Iterator, Mapping, Sequence
from time import time
from typing import Any
from uuid import uuid4

from starlette.responses import Response, StreamingResponse

from bough.serve.dialects.sampling_fields import SamplingFields
from bough.serve.dialects.usage import Usage

DENIED = "content_filter"
"""OpenAI's finish reason of a completion that is withheld."""


def head(name: str, model: str) -> dict[str, Any]:
    """The first fields of a response; `name` is "chat.completion", "text_completion" or a chunk's."""
    return {"id": f"{name.partition('.')[0]}-{uuid4().hex}", "object": name, "created": int(time()), "model": model}


def shown_usage(usage: Usage) -> dict[str, int]:
    """Counts of tokens."""
    return {"prompt_tokens": usage.read, "completion_tokens": usage.sampled, "total_tokens": usage.total}


def streamed(
    head: Mapping[str, Any],
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, int],
    body: SamplingFields,
    extra: Mapping[str, Any],
) -> Response:
    """A stream of chunks, one a choice; `extra` is in the first alone."""
    chunks = [{**head, "choices": [choice]} for choice in choices]
    chunks[0] |= extra
    if body.stream_options and body.stream_options.include_usage:
        chunks.append({**head, "choices": [], "usage": counts})
    return StreamingResponse(_events(chunks), media_type="text/event-stream")


def _events(chunks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Server-sent events of chunks, with the end mark."""
    for chunk in chunks:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
