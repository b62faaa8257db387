"""A viewer that listens in a thread of this process, and a browser for it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from bough.serve.address import listen
from bough.train.run_parts import RunParts
from bough.viewer.player import Player
from bough.viewer.runs import Runs
from bough.viewer.server import viewer_app
from bough.worlds.miniwob.chromium import find_chromium


@contextmanager
def served(folder: Path, branches: Path, player: Player | None = None, **settings: Any) -> Iterator[str]:
    """The address of a viewer of the runs in a folder; see `viewer_app`."""
    app = viewer_app(Runs([folder]), branches, player, **{"parts": RunParts(), **settings})
    with closing(listen()) as listener:
        server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_level="error"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


@contextmanager
def opened_browser(*flags: str) -> Iterator[Any]:
    """Chromium, by Playwright. Until it ends its thread has a running event loop.

    Raises:
        ImportError: without Playwright.
        OSError: without Chromium.
    """
    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=find_chromium(""), args=["--no-sandbox", *flags])
        yield browser
        browser.close()
