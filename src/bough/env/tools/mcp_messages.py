"""What MCP servers send: results as text, and lines that are no messages."""

import json
import logging
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

UNREADABLE = (
    "Failed to parse JSONRPC message from server",
    "Error parsing JSON response",
    "Error parsing SSE message",
)
"""What the SDK logs, with a traceback, for each such line or answer."""

LOGGERS = ("mcp.client.stdio", "client", "mcp.client.session", "mcp.client.streamable_http")
"""Loggers of the SDK, of versions 1 and 2."""

SHOWN = 80
"""Maximum characters of a line in a message."""

PROBLEMS = re.compile(r"\d+ validation errors? for \S+\n(?:(\S[^\n]*)\n)?  (.*?) \[type=.*", re.DOTALL)
"""Pydantic's text of an answer that is no message."""

_NOISY: set[str] = set()
"""Servers whose first line that is no message was shown."""


def result_text(result: Mapping[str, Any]) -> str:
    """The text of a result: of its contents, or its structured content as JSON where no content is a text."""
    parts = [_content(each) for each in result["content"]]
    structured = result.get("structuredContent")
    if structured is not None and not any(each["type"] == "text" for each in result["content"]):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(parts)


def _content(part: Mapping[str, Any]) -> str:
    """A text as it is; the text of a resource; anything else by its type, its name and its address."""
    if part["type"] == "text":
        return str(part["text"])
    inner = cast("Mapping[str, Any]", part.get("resource") or part)
    if isinstance(inner.get("text"), str):
        return str(inner["text"])
    named = [str(inner[key]) for key in ("name", "uri", "mimeType") if inner.get(key)]
    return f"[{' '.join([str(part['type']), *named])}]"


def first_problem(reason: str) -> str:
    """A reason with the first problem in the place of pydantic's list of them."""
    return PROBLEMS.sub(lambda found: ": ".join(filter(None, found.groups())), reason)


def show_noise(server: str, error: Exception) -> None:
    """Shows the first line of a server that is no message, by the error that it is for the SDK."""
    if server not in _NOISY:
        _NOISY.add(server)
        found: Any = error
        shown = repr(found.errors()[0].get("input") if hasattr(found, "errors") else str(error))
        print(
            f"MCP server {server}: got a line on its standard output that is no message: {shown[:SHOWN]}"
            f"{'...' if len(shown) > SHOWN else ''}; need messages only, print others to standard error. Further lines "
            "are not shown",
            file=sys.stderr,
            flush=True,
        )


@cache
def quiet_sdk() -> None:
    """Keep the SDK from logging each line that is no message; it logs another text once, without a traceback."""
    shown = set[str]()

    def once(record: logging.LogRecord) -> bool:
        first, record.exc_info = record.msg not in shown, None
        shown.add(str(record.msg))
        return first and record.msg not in UNREADABLE

    for name in LOGGERS:
        logging.getLogger(name).addFilter(once)
