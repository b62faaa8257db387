"""What an open page of `bough view` costs a run that trains.

    python bench/live_view.py [--rounds 6] [--steps 60] [--client browser] [--write]

The same training, in a process of its own with one thread, with an open page of its run and without, in turn. The
viewer and its client have processes of their own, as usual. A client of server-sent events fetches what the page of a
run fetches at each change; `--client browser` opens the page in Chromium instead. Processor time is the training
process's: the wall time includes what other jobs of the machine take.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import torch

import bough
from machine import machine
from page import section
from served_viewer import opened_browser

NAME = "watched"
SMALL = ("warmup.demonstrations=40", "warmup.epochs=2", "evaluation.tasks.count=8", "evaluation.every=10", "threads=1")


def main() -> None:
    """Train in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--client", choices=("events", "browser"), default="events")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    given = parser.parse_args()
    took: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(given.rounds):
        for watched in (False, True) if number % 2 else (True, False):
            took[watched].append(training(given.steps, given.client if watched else None))
    with section("live-view", keep=given.write) as say:
        say("| client | time | alone, s | with the page, s | ratio | over pairs |")
        say("|---" * 6 + "|")
        for at, kind in enumerate(("processor", "wall")):
            alone, beside = ([each[at] for each in took[watched]] for watched in (False, True))
            say(f"| {given.client} | {kind} | {median(alone):.2f} | {median(beside):.2f} | {ratios(alone, beside)} |")
        say(f"\n{given.rounds} pairs of {given.steps} steps; {machine(1)}")


def ratios(alone: Sequence[float], beside: Sequence[float]) -> str:
    """The median of the ratios of pairs, and their range."""
    found = sorted(two / one for one, two in zip(alone, beside, strict=True))
    return f"**{median(found):.3f}** | {found[0]:.3f} to {found[-1]:.3f}"


def training(steps: int, client: str | None) -> tuple[float, float]:
    """Processor and wall seconds of a training."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _watching(folder, client) if client else nullcontext():
            ours, theirs = context.Pipe()
            process = context.Process(target=_train, args=(folder, steps, theirs))
            process.start()
            theirs.close()  # so that a failed training ends the wait
            found = ours.recv()
            process.join()
    return found


def _train(folder: Path, steps: int, reply: Connection) -> None:
    torch.set_num_threads(1)
    processor, wall = time.process_time(), time.perf_counter()
    bough.train("grpo", [*SMALL, f"steps={steps}"], on="sokoban", out=folder, name=NAME)
    reply.send((time.process_time() - processor, time.perf_counter() - wall))


@contextmanager
def _watching(folder: Path, client: str) -> Iterator[None]:
    """`bough view` of a folder, and a client of the page of its run."""
    words = [sys.executable, "-m", "bough", "view", str(folder), "--port", "0", "--branches", str(folder / "branches")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("open ").strip()
        watch = multiprocessing.get_context("spawn").Process(target=CLIENTS[client], args=(address,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            watch.terminate()
            watch.join()
            server.terminate()


def _follow_events(address: str) -> None:
    """Fetch what the page of the run shows, at each of its events."""
    base = f"{address}api/run/{NAME}"
    with urlopen(f"{address}api/events") as events:
        for line in events:
            if line.startswith(b"data:") and NAME in json.loads(line[5:]):
                for path in (base, f"{base}/metrics", f"{base}/trees", f"{base}/evaluations"):
                    urlopen(path).read()


def _follow_page(address: str) -> None:
    """The page of the run in a browser, once there is a run."""
    with opened_browser() as browser:
        page = browser.new_page()
        page.goto(f"{address}#/runs")
        page.locator("tbody a").first.click(timeout=0)
        page.wait_for_timeout(10_000_000)


CLIENTS = {"events": _follow_events, "browser": _follow_page}


if __name__ == "__main__":
    main()
