"""One Chromium for all environments of a process: started on the first call, replaced when it dies or hangs."""

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from bough.env.env import EnvFault
from bough.worlds.miniwob.chromium import BrowserDied, Chromium, find_chromium
from bough.worlds.miniwob.pages import Pages, find_pages

T = TypeVar("T")

ATTEMPTS = 3
"""Browsers in which a call is tried; episodes are rebuilt from their actions, so a call can be repeated."""

_LOCK = threading.RLock()
_browsers: dict[tuple[int, str, float], Pages] = {}
"""By process, program and deadline: a forked child does not share its parent's browser."""


def with_pages(program: str, deadline_s: float, call: Callable[[Pages], T]) -> T:
    """Returns `call` of the pages of a running Chromium; repeats it in a new one where Chromium died.

    Args:
        program: Name or path of Chromium; "" to search for it.
        deadline_s: Maximum seconds for one call of the browser.
        call: A function of the pages, which may run several times.

    Raises:
        EnvFault: when `ATTEMPTS` browsers died in this call.
        ImportError: when Chromium or the pages are not installed.
    """
    problem = ""
    with _LOCK:
        for _ in range(ATTEMPTS):
            try:
                return call(_pages(program, deadline_s))
            except BrowserDied as died:
                problem = str(died)
                _close(program, deadline_s)
    raise EnvFault(
        f"MiniWob: {ATTEMPTS} browsers in a row died: {problem}; need a Chromium that runs without a window, try: "
        f"{find_chromium(program)} --headless=new --no-sandbox --dump-dom about:blank; or a larger deadline_s"
    )


def close_pages(program: str, deadline_s: float) -> None:
    """Ends Chromium; a later call starts it again."""
    with _LOCK:
        _close(program, deadline_s)


def process_id(program: str, deadline_s: float) -> int | None:
    """The leader of the process group of a running Chromium; None where none runs."""
    found = _browsers.get((os.getpid(), program, deadline_s))
    return None if found is None else found.browser.process_id


def _pages(program: str, deadline_s: float) -> Pages:
    name = (os.getpid(), program, deadline_s)
    if name not in _browsers:
        html = find_pages()
        _browsers[name] = Pages(browser=Chromium(find_chromium(program), deadline_s), html=html)
    return _browsers[name]


def _close(program: str, deadline_s: float) -> None:
    found = _browsers.pop((os.getpid(), program, deadline_s), None)
    if found is not None:
        found.browser.close()
