"""A Chromium's pages as a pool: an episode is a page, or the actions that lead to it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bough.worlds.miniwob.chromium import BrowserDied, Chromium
from bough.worlds.miniwob.command import KEYS, Command
from bough.worlds.miniwob.element import Reading, read
from bough.worlds.miniwob.kinds import REUSED

WIDTH, HEIGHT = 160, 210
"""Size of a task's page, in pixels."""
WINDOW = (500, 320)
"""Size of the page, in which dialogs may lie outside of the task's part."""
MOST_PAGES = 12
RELOAD_EVERY = 400
"""Episodes in one document; then it is loaded again, so that what a page leaks is freed."""
TICK_MS = 1000
"""The page's clock moves by this after every action."""
EPISODE_MS = 2**30
"""The page's own limit of time, out of reach."""

LOADED = """new Promise((resolve) => {
  if (document.readyState === "complete") resolve(true);
  else addEventListener("load", () => resolve(true));
})"""

INSTALL = "do: pip install --no-deps --requirement constraints/miniwob.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A position in an episode: a value.

    Attributes:
        kind: The task's page, such as "click-button".
        seed: Of the page's random numbers.
        actions: The executed actions.
    """

    kind: str
    seed: int
    actions: tuple[Command, ...] = ()


@dataclass(slots=True, eq=False)
class Page:
    """A page of Chromium.

    Attributes:
        session: Its name in the DevTools protocol.
        kind: The loaded document; "" for none.
        episodes: Number of episodes in this document.
        episode: The present position; None where it is unknown.
        reading: What it shows.
        used: When it was used last, as a count.
    """

    session: str
    kind: str = ""
    episodes: int = 0
    episode: Episode | None = None
    reading: Reading | None = None
    used: int = 0


@dataclass(slots=True, eq=False)
class Pages:
    """The pages of a Chromium. Episodes of one kind follow each other in one document; its script resets it.

    Attributes:
        browser: The process.
        html: Folder of the pages.
    """

    browser: Chromium
    html: Path
    _pages: list[Page] = field(default_factory=list[Page])
    _clock: int = 0

    def show(self, episode: Episode) -> tuple[Reading, int]:
        """Returns what the page shows at a position, and the number of actions that were replayed to reach it.

        Raises:
            BrowserDied: when Chromium ends or hangs.
        """
        page, replayed = self._reach(episode)
        assert page.reading is not None
        return page.reading, replayed

    def act(self, episode: Episode, command: Command) -> tuple[Reading | str, int]:
        """Executes an action; returns what the page shows then, or why the action is impossible.

        The second result is the number of actions that were replayed.

        Raises:
            BrowserDied: when Chromium ends or hangs.
        """
        page, replayed = self._reach(episode)
        return self._execute(page, command), replayed

    def screenshot(self, episode: Episode) -> bytes:
        """Returns the task's page at a position, a PNG of 160 x 210 pixels.

        Raises:
            BrowserDied: when Chromium ends or hangs.
        """
        page, _ = self._reach(episode)
        return self.browser.screenshot(page.session, WIDTH, HEIGHT)

    def _reach(self, episode: Episode) -> tuple[Page, int]:
        self._clock += 1
        page = next((each for each in self._pages if each.episode == episode), None)
        replayed = 0
        if page is None:
            page = self._page_for(episode.kind)
            self._reset(page, episode)
            for command in episode.actions:
                if isinstance(problem := self._execute(page, command), str):
                    raise BrowserDied(f"a replayed action was not possible: {problem}")
                replayed += 1
        page.used = self._clock
        return page, replayed

    def _page_for(self, kind: str) -> Page:
        """A page of the kind whose episode is over, one more page, or the one that was not used for the longest time.

        That is one of the same kind, or of the kind with the most pages: loading a document takes longer than replay.
        """
        same = [page for page in self._pages if page.kind == kind]
        over = [page for page in same if page.episode is None or (page.reading is not None and page.reading.done)]
        if not over and len(self._pages) < MOST_PAGES:
            script = files("bough.worlds.miniwob").joinpath("page.js").read_text()
            self._pages.append(Page(session=self.browser.open_page(script, *WINDOW)))
            return self._pages[-1]
        counts = Counter(page.kind for page in self._pages)
        return min(over or same or self._pages, key=lambda page: (-counts[page.kind], page.used))

    def _reset(self, page: Page, episode: Episode) -> None:
        page.episode = page.reading = None
        if page.kind != episode.kind or page.episodes >= (RELOAD_EVERY if episode.kind in REUSED else 1):
            self._load(page, episode.kind)
        page.episodes += 1
        page.reading = read(self._run(page, f"reset({episode.seed}, {EPISODE_MS})"))
        page.episode = Episode(kind=episode.kind, seed=episode.seed)

    def _load(self, page: Page, kind: str) -> None:
        page.kind, page.episodes = "", 0
        self.browser.call("Page.navigate", {"url": (self.html / f"{kind}.html").as_uri()}, page.session)
        self._evaluate(page, LOADED)
        self._run(page, "ready()")
        page.kind = kind

    def _execute(self, page: Page, command: Command) -> Reading | str:
        assert page.episode is not None
        if command.verb == "press":
            self._press(page, command.text)
            answer = self._run(page, f"wait({TICK_MS})")
        elif command.points:
            x, y = command.points[0]
            answer = self._run(page, f"point({x}, {y}, {TICK_MS})")
        else:
            answer = self._run(
                page, f"act({json.dumps(command.verb)}, {command.ref}, {json.dumps(command.text)}, {TICK_MS})"
            )
        if problem := answer.get("problem"):
            return str(problem)
        before = page.episode
        page.episode = Episode(kind=before.kind, seed=before.seed, actions=(*before.actions, command))
        page.reading = read(answer)
        return page.reading

    def _press(self, page: Page, name: str) -> None:
        key, code, text = KEYS[name]
        event: dict[str, Any] = {"key": key, "code": key if key.strip() else "Space", "windowsVirtualKeyCode": code}
        down = {**event, "type": "keyDown", "text": text} if text else {**event, "type": "rawKeyDown"}
        self.browser.call("Input.dispatchKeyEvent", down, page.session)
        self.browser.call("Input.dispatchKeyEvent", {**event, "type": "keyUp"}, page.session)

    def _run(self, page: Page, call: str) -> dict[str, Any]:
        return self._evaluate(page, f"__bough.{call}")

    def _evaluate(self, page: Page, expression: str) -> Any:
        wanted = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.browser.call("Runtime.evaluate", wanted, page.session)
        if problem := answer.get("exceptionDetails"):
            page.kind, page.episode = "", None
            what = problem.get("exception", {}).get("description", problem.get("text", ""))
            raise BrowserDied(f"the page's script raised in {expression[:60]}: {what[:300]}")
        return answer["result"].get("value")


def find_pages() -> Path:
    """Returns the folder of the tasks' pages.

    Raises:
        ImportError: when the package is not installed.
    """
    spec = find_spec("miniwob")
    places: Sequence[str] = spec.submodule_search_locations or () if spec else ()
    found = next((path for place in places if (path := Path(place) / "html" / "miniwob").is_dir()), None)
    if found is None:
        raise ImportError(f"MiniWob: the pages are not installed; {INSTALL}")
    return found
