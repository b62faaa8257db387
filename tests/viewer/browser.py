"""Pages of a real browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.missing import need

import served_viewer

ELSEWHERE = "elsewhere.example"
"""A host name that the browser resolves to this machine."""


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Chromium, for the tests of a module at most: until it ends, the thread has a running event loop."""
    need("playwright", "chromium")
    with served_viewer.opened_browser(f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1") as browser:
        yield browser


@contextmanager
def opened_page(browser: Any, **settings: Any) -> Iterator[Any]:
    """A page of a new visitor, on which no script may fail."""
    context = browser.new_context(viewport={"width": 1300, "height": 800}, **settings)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []
