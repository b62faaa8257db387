"""A response: its items and its other fields."""

import json
from collections.abc import Mapping
from time import time
from typing import Any
from uuid import uuid4

from bough.engine import FinishReason
from bough.serve.choice import Choice, TokenTexts, token_logprobs
from bough.serve.dialects.responses.request import ResponsesRequest
from bough.serve.dialects.usage import usage_of
from bough.serve.restriction import NamedTool
from bough.serve.thinking import thinking_tokens

INCOMPLETE = {FinishReason.LENGTH: "max_output_tokens"}
"""The reasons of a response that did not end."""


def new_id(kind: str) -> str:
    """An id of a response or an item; `kind` is its prefix."""
    return f"{kind}_{uuid4().hex}"


def response_of(
    texts: TokenTexts, name: str, model: str, choice: Choice, body: ResponsesRequest, *, logprobs: bool
) -> dict[str, Any]:
    """The response to a request.

    Args:
        texts: The texts of its tokens.
        name: Its id.
        model: The model's name.
        choice: The answer.
        body: The request, whose settings the response repeats.
        logprobs: Whether its text has the log-probabilities of its tokens.
    """
    reason = "content_filter" if choice.denied else INCOMPLETE.get(choice.completion.finish)
    status, now = "incomplete" if reason else "completed", int(time())
    listed = token_logprobs(texts, choice.completion) if logprobs and not choice.denied else []
    return {
        "id": name,
        "object": "response",
        "created_at": now,
        "completed_at": None if reason else now,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": model,
        "output": _items(choice, status, listed),
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "store": body.store is not False,
        "temperature": body.temperature,
        "text": {"format": _format(body)},
        "tool_choice": _choice(body.tool_choice),
        "tools": [_tool(each.tool) for each in body.tools or ()],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": _usage(texts, choice),
    }


def _format(body: ResponsesRequest) -> Mapping[str, object]:
    """The format of the text, as the client named it."""
    wanted = body.text.format if body.text else None
    return wanted.model_dump(by_alias=True, exclude_none=True) if wanted else {"type": "text"}


def _choice(choice: str | NamedTool | None) -> object:
    """The choice of tools, as the client named it."""
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedTool) else choice or "auto"


def _tool(tool: Any) -> Mapping[str, object]:
    named = {"type": "function", "name": tool.name, "description": tool.description}
    return named | {"parameters": tool.schema, "strict": False}


def _items(choice: Choice, status: str, logprobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of an answer: its thinking, its text if it has any or nothing else, its calls."""
    said, items = choice.said, list[dict[str, Any]]()
    if said.thinking:
        content = [{"type": "reasoning_text", "text": said.thinking}]
        items.append({"id": new_id("rs"), "type": "reasoning", "summary": [], "content": content, "status": status})
    if said.content or not (said.tool_calls or items):
        text = {"type": "output_text", "text": said.content, "annotations": [], "logprobs": logprobs}
        part = {"type": "refusal", "refusal": choice.denied} if choice.denied else text
        message = {"id": new_id("msg"), "type": "message", "role": "assistant", "status": status}
        items.append(message | {"content": [part]})
    for call in said.tool_calls:
        items.append(
            {
                "id": new_id("fc"),
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
        )
    return items


def _usage(texts: TokenTexts, choice: Choice) -> Mapping[str, object]:
    usage = usage_of([choice])
    return {
        "input_tokens": usage.read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.sampled,
        "output_tokens_details": {"reasoning_tokens": thinking_tokens(texts.renderer, choice.completion.tokens)},
        "total_tokens": usage.total,
    }
