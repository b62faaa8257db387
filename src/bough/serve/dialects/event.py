"""A server-sent event with a name, as in streams of responses and messages."""

import json
from collections.abc import Mapping


def named_event(kind: str, fields: Mapping[str, object]) -> str:
    """The text of an event; its data begin with its type."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
