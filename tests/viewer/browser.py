"""A viewer that listens, and a page of a real browser."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from tests.missing import need

from bough.serve.address import listen
from bough.viewer.player import Player
from bough.viewer.runs import Runs
from bough.viewer.server import viewer_app

ELSEWHERE = "elsewhere.example"
"""A host name that the browser resolves to this machine."""


@contextmanager
def served(folder: Path, branches: Path, player: Player | None = None, **settings: Any) -> Iterator[str]:
    """The address of a viewer of the runs in a folder."""
    app = viewer_app(Runs([folder]), branches, player, **settings)
    with closing(listen()) as listener:
        server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_level="error"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = server.force_exit = True
        thread.join()


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Chromium. Until it ends its thread has a running event loop, so a fixture has at most a module as its scope."""
    need("playwright", "chromium")
    from playwright.sync_api import sync_playwright

    from bough.worlds.miniwob.chromium import find_chromium

    flags = ["--no-sandbox", f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"]
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=find_chromium(""), args=flags)
        yield browser
        browser.close()


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
