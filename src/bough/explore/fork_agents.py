"""Imports an agent's function once, and forks a process for each episode.

Runs as a script and imports nothing of Bough: `python fork_agents.py FOLDER_OF_KEEPER FILE.py NAME`. Requests are
lines of JSON on standard input, answers on standard output:

    {"id": 1, "memory": 0, "environment": {...}, "out": FILE, "err": FILE}   ->   {"id": 1, "pid": 42}
                                                                                  {"id": 1, "status": 0}

At the end of the input, all processes are killed.
"""

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Agent = Any
"""The user's function, or the traceback of a file that can't be imported."""


def main(folder: str, file: str, name: str) -> None:
    """Import the function, then answer requests."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the import prints is no answer
    sys.path.insert(0, folder)
    keeper: Any = importlib.import_module("keeper")

    sys.path[0] = str(Path(file).parent)
    agent = _load(file, name)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, _woken)
    running: dict[int, int] = {}
    keeper.call_prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
    with suppress(KeyboardInterrupt):
        while True:
            ready, _, _ = select.select([0, woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                for pid, status in _ended(running):
                    print(json.dumps({"id": running.pop(pid), "status": status}), file=answers)
                # The children of an episode's process that was killed become children of this one.
                keeper.end_children(but=running)
            if 0 in ready:
                line = _line()
                if not line:
                    break
                request = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    os.close(answers.fileno())
                    _child(agent, request, keeper)
                running[pid] = request["id"]
                print(json.dumps({"id": request["id"], "pid": pid}), file=answers)
    for pid in running:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + keeper.END_S
    while running and time.monotonic() < end:
        for pid, _ in _ended(running):
            del running[pid]
        time.sleep(0.001)
    keeper.end_children()


def _woken(number: int, frame: object) -> None:
    """Leave the signal to the wakeup pipe."""
    del number, frame


def _line() -> bytes:
    """The next line of the input; without a buffer, which would hide further lines from `select`."""
    line = bytearray()
    while not line.endswith(b"\n"):
        part = os.read(0, 1)
        if not part:
            return b""
        line += part
    return bytes(line)


def _load(file: str, name: str) -> Agent:
    try:
        spec = importlib.util.spec_from_file_location("bough_agent", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["bough_agent"] = module
        spec.loader.exec_module(module)
        return getattr(module, name)
    except BaseException:
        return traceback.format_exc()


def _ended(running: Mapping[int, int]) -> list[tuple[int, int]]:
    """The processes that ended, with their exit statuses."""
    ended: list[tuple[int, int]] = []
    for pid in list(running):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended


def _child(agent: Agent, request: Mapping[str, Any], keeper: Any) -> None:
    """Run an episode in a child of this process; never returns."""
    try:
        for number, path in enumerate(("/dev/null", request["out"], request["err"])):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, number)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        keeper.end_like(keeper.keep(lambda: _episode(agent, request["environment"]), request["memory"]))
    finally:
        os._exit(1)


def _episode(agent: Agent, environment: Mapping[str, str]) -> None:
    """Run an episode; never returns."""
    status = 1
    try:
        os.environ |= environment
        # Processes of one import have equal random states.
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        _run(agent)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _run(agent: Agent) -> None:
    """Call the function, and post its result."""
    if isinstance(agent, str):
        sys.exit(agent)
    settings = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    episode, result = os.getpid(), agent(json.loads(os.environ["BOUGH_TASK"]), settings)
    result = asyncio.run(_ended_by(result)) if inspect.isawaitable(result) else result
    if os.getpid() != episode:
        sys.exit("the child of a fork returned from the agent; do: end it with os._exit")
    _post(json.dumps(result))


async def _ended_by(call: Awaitable[object]) -> object:
    return await call


def _post(body: str) -> None:
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    address = urlsplit(os.environ["OPENAI_BASE_URL"])
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("POST", f"{address.path}/outcome", body, headers)
    response = connection.getresponse()
    if response.status != 200:
        sys.exit(f"the outcome was not accepted: {response.read().decode()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
