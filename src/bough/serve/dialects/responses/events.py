"""The events of a streamed response."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from bough.serve.choice import parts_of
from bough.serve.dialects.event import named_event

Event = tuple[str, dict[str, Any]]
"""The type of an event, and its fields besides type and number."""


def response_events(response: Mapping[str, Any]) -> Iterator[str]:
    """Server-sent events of a response: its begin, the parts of each item, and the whole.

    Args:
        response: The whole response.
    """
    begun: dict[str, Any] = {**response, "status": "in_progress", "completed_at": None, "incomplete_details": None}
    begun |= {"output": [], "usage": None}
    events: list[Event] = [(f"response.{name}", {"response": begun}) for name in ("created", "in_progress")]
    for index, item in enumerate(response["output"]):
        events += _item(index, item)
    events.append((f"response.{response['status']}", {"response": dict(response)}))
    numbers = count()
    for kind, fields in events:
        yield named_event(kind, {"sequence_number": next(numbers), **fields})


def _item(index: int, item: Mapping[str, Any]) -> Iterator[Event]:
    """An item: its begin, its content, the whole."""
    place = {"output_index": index}
    empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    yield "response.output_item.added", place | {"item": {**item, "status": "in_progress"} | empty}
    own = {"item_id": item["id"], **place}
    if item["type"] == "function_call":
        yield "response.function_call_arguments.delta", own | {"delta": item["arguments"]}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield "response.function_call_arguments.done", own | done
    else:
        for number, part in enumerate(item["content"]):
            yield from _part(own | {"content_index": number}, part)
    yield "response.output_item.done", place | {"item": dict(item)}


def _part(place: dict[str, Any], part: Mapping[str, Any]) -> Iterator[Event]:
    """A part of a content: its begin, its text line by line, the whole."""
    kind, field = part["type"], "refusal" if part["type"] == "refusal" else "text"
    # Tokens do not end with lines, so the end of the text has all log-probabilities.
    rest = {"logprobs": part["logprobs"]} if kind == "output_text" else {}
    yield "response.content_part.added", place | {"part": {**part, field: ""} | {name: [] for name in rest}}
    for text in parts_of(part[field]):
        yield f"response.{kind}.delta", place | {"delta": text} | {name: [] for name in rest}
    yield f"response.{kind}.done", place | {field: part[field]} | rest
    yield "response.content_part.done", place | {"part": dict(part)}
