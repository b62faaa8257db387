"""The shapes of Anthropic's errors and lists of models."""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from starlette.requests import Request

from bough.serve.errors import TYPES, ApiError
from bough.serve.session import TOO_LONG

PATH = "/v1/messages"
VERSION = "anthropic-version"
"""The header that each request of Anthropic's API has."""

NO_THREADS = "thread_unsupported_request"
"""Anthropic's code for a request with a thread: its client's tool runner then sends whole conversations."""

ANTHROPIC_TYPES = TYPES | {403: "permission_error", 503: "overloaded_error"}
"""The types of errors, by status."""


def is_request(request: Request) -> bool:
    """Whether a request is one of Anthropic's API."""
    path = request.url.path
    return path == PATH or path.startswith(f"{PATH}/") or VERSION in request.headers


def error_body(error: ApiError) -> Mapping[str, object]:
    """The response's JSON."""
    kind = ANTHROPIC_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    # Agents find the error that a shorter conversation mends by these words.
    message = f"prompt is too long: {error.message}" if error.code == TOO_LONG else error.message
    details = {"details": {"error_code": NO_THREADS, "unsupported": ["thread"]}} if error.code == NO_THREADS else {}
    found = {"type": "error", "error": {"type": kind, "message": message, **details}}
    return found | {"request_id": f"req_{uuid4().hex}"}


def card(name: str) -> Mapping[str, object]:
    """A model."""
    return {
        "id": name,
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    }


def listed(names: Sequence[str]) -> Mapping[str, object]:
    """A list of models, whole."""
    rows = [card(name) for name in names]
    return {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}
