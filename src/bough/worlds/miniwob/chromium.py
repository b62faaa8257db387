"""A Chromium without a window, driven by the DevTools protocol over a pipe."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any, cast

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
INSTALL = (
    "need Chromium or Chrome, do: apt-get install chromium (or your system's package), or name the program in the "
    "field `chromium` or the variable BOUGH_CHROMIUM"
)
SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-zygote",
    "--no-first-run",
    "--no-startup-window",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-renderer-backgrounding",
    "--disable-site-isolation-trials",
    "--disable-smooth-scrolling",
    "--disable-sync",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--lang=en-US",
    "--mute-audio",
    "--password-store=basic",
    "--process-per-site",
    "--renderer-process-limit=1",
)
"""No window, no network, one renderer for all pages. The pages are files of a package, so there is no sandbox."""

LAUNCH = 'trap "" INT TERM HUP; "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; rm -rf "$FOLDER"'
"""The shell gives the pipes the numbers that Chromium needs, and removes its folder at the end, however it ends."""

CRASHES = ("Inspector.targetCrashed", "Target.targetCrashed")
CHUNK_BYTES = 1 << 16
LONGEST_FOLDER = 50
"""Maximum length, in bytes, of the folder for temporary files: Chromium ends if the path of its socket has over 107."""
END_S = 3.0
"""Seconds for Chromium to end by itself."""


class BrowserDied(Exception):
    """Chromium ended, hung, or one of its pages crashed."""


class Chromium:
    """A Chromium process. It ends when this object is closed or dropped, and when this process ends, also when killed.

    Chromium ends when its pipe closes, so it does not outlive the process that holds the other end.
    """

    def __init__(self, program: str, deadline_s: float) -> None:
        """Starts the process.

        Args:
            program: Path of Chromium, see `find_chromium`.
            deadline_s: Maximum seconds for one call.

        Raises:
            BrowserDied: when the program does not start.
        """
        self.deadline_s = deadline_s
        self._buffer = b""
        self._calls = 0
        temporary = tempfile.gettempdir()
        if len(os.fsencode(temporary)) > LONGEST_FOLDER:
            temporary = "/tmp"
        folder = tempfile.mkdtemp(prefix="bough-chromium-", dir=temporary)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", LAUNCH, "sh", program, *SWITCHES, f"--user-data-dir={folder}"],
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "FOLDER": folder, "TMPDIR": temporary, "TZ": "UTC"},
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._out, False)
        self._end = weakref.finalize(self, _end, self._process, (self._in, self._out), folder, os.getpid())
        self.call("Browser.getVersion")

    @property
    def process_id(self) -> int:
        """The leader of Chromium's process group."""
        return self._process.pid

    def call(self, method: str, parameters: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Calls a method of the DevTools protocol; returns its result.

        Args:
            method: Its name, such as "Runtime.evaluate".
            parameters: Its parameters.
            session: The page; "" for the browser.

        Raises:
            BrowserDied: when Chromium ends, hangs or responds with an error.
        """
        self._calls += 1
        number, until = self._calls, time.monotonic() + self.deadline_s
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0", until)
        while True:
            answer = self._receive(until)
            if answer.get("method") in CRASHES:
                raise BrowserDied(f"a page of Chromium crashed in {method}")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserDied(f"Chromium responded to {method}: {answer['error'].get('message')}")
                return cast("dict[str, Any]", answer["result"])

    def open_page(self, script: str, width: int, height: int) -> str:
        """Opens an empty page that runs `script` before the scripts of every document; returns its session.

        Raises:
            BrowserDied: as in `call`.
        """
        target = self.call("Target.createTarget", {"url": "about:blank", "newWindow": True})["targetId"]
        session = str(self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Page.enable", session=session)
        self.call("Page.addScriptToEvaluateOnNewDocument", {"source": script}, session)
        self.call("Emulation.setDeviceMetricsOverride", size, session)
        self.call("Emulation.setFocusEmulationEnabled", {"enabled": True}, session)
        return session

    def screenshot(self, session: str, width: int, height: int) -> bytes:
        """Returns a PNG of the upper left part of a page.

        Raises:
            BrowserDied: as in `call`.
        """
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", {"clip": clip}, session)["data"])

    def close(self) -> None:
        """Ends the processes; safe to call twice."""
        self._end()

    def _send(self, data: bytes, until: float) -> None:
        try:
            while data:
                if not select.select((), (self._out,), (), max(0.0, until - time.monotonic()))[1]:
                    raise BrowserDied(f"Chromium read nothing within {self.deadline_s:g} s")
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise BrowserDied(f"Chromium ended: {error}") from error

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            try:
                if not select.select((self._in,), (), (), max(0.0, until - time.monotonic()))[0]:
                    raise BrowserDied(f"Chromium sent nothing within {self.deadline_s:g} s")
                chunk = os.read(self._in, CHUNK_BYTES)
            except OSError as error:
                raise BrowserDied(f"Chromium ended: {error}") from error
            if not chunk:
                raise BrowserDied("Chromium ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return cast("dict[str, Any]", json.loads(line))


def find_chromium(program: str) -> str:
    """Returns the path of Chromium.

    Args:
        program: Its name or path; "" for `BOUGH_CHROMIUM`, and where that is not set for the first of `NAMES`.

    Raises:
        ImportError: when there is none.
    """
    wanted = program or os.environ.get("BOUGH_CHROMIUM", "")
    found = next(filter(None, map(shutil.which, (wanted,) if wanted else NAMES)), None)
    if found is None:
        raise ImportError(f"got no browser {wanted or ' or '.join(NAMES)}; {INSTALL}")
    return found


def _end(process: subprocess.Popen[bytes], pipes: tuple[int, int], folder: str, owner: int) -> None:
    """Closes the pipes, at which Chromium ends; kills what has not ended after `END_S`."""
    for pipe in pipes:
        with contextlib.suppress(OSError):
            os.close(pipe)
    if os.getpid() != owner:
        return  # a forked child, which has only copies of the pipes
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if Path(folder).is_dir():
        shutil.rmtree(folder, ignore_errors=True)
