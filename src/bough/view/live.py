"""Live progress of a run: a panel on a terminal, else one plain line a step."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from bough.units import number_of
from bough.view.numbers import duration, percent, short
from bough.view.progress import PLAIN, SHARES, Progress, Told, interval
from bough.visible import visible

if TYPE_CHECKING:
    import rich.panel


class Live:
    """Shows progress; a context manager.

        with Live("grpo_frozenlake", steps=200) as live:
            live.update(Progress(step=1, steps=200, phase="rl", metrics={"train/success": 0.25}))
            live.say("saved checkpoints/step_000001")

    Args:
        title: Title of the run.
        steps: Steps, those of the warm-up too.
        epochs: Epochs of the warm-up, which are the first steps.
        terminal: Whether to draw a panel; detects a terminal on standard output by default.
        clock: Monotonic time in seconds.
    """

    def __init__(
        self,
        title: str,
        steps: int,
        epochs: int = 0,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = title
        self._steps = steps
        self._epochs = epochs
        self._terminal = sys.stdout.isatty() if terminal is None else terminal
        self._clock = clock
        self._told = Told(at_s=clock())
        self._open = ExitStack()

    def __enter__(self) -> "Live":
        self._told = Told(at_s=self._clock())
        if self._terminal:
            from rich.console import Console
            from rich.live import Live as Screen

            console = Console(force_terminal=True)
            self._open.enter_context(Screen(get_renderable=self._panel, console=console, refresh_per_second=4))
        else:
            steps, epochs = number_of(self._steps, "step"), number_of(self._epochs, "epoch")
            self._print(f"{self._title}: {steps}" + (f", the warm-up's {epochs} first" if self._epochs else ""))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def update(self, progress: Progress) -> None:
        """Show a step."""
        self._told = self._told.after(progress, self._clock())
        if not self._terminal:
            self._print(line(self._told, self._clock()))

    def say(self, text: str) -> None:
        """Show a message."""
        text = visible(text)
        self._told = self._told.saying(text)
        if not self._terminal:
            self._print(text)

    def _print(self, text: str) -> None:
        """Print a line; if standard output is closed or full, print one note on standard error, and no more lines."""
        try:
            print(text, flush=True)
        except (OSError, ValueError) as error:
            # A failed print must not stop the run; metrics.jsonl has the same values.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
            with suppress(OSError):
                print(f"standard output cannot be written ({error}); the run continues without it", file=sys.stderr)

    def _panel(self) -> "rich.panel.Panel":
        from bough.view.panel import panel

        return panel(self._title, self._steps, self._told, self._clock())


def line(told: Told, now_s: float) -> str:
    """The newest step in one line."""
    progress = told.last
    if progress is None:
        return ""
    metrics = progress.metrics
    parts = [progress.counted]
    if "train/success" in metrics:
        parts.append(f"train {percent(metrics['train/success'])}")
    if "train/answers" in metrics:
        parts.append(f"answers {percent(metrics['train/answers'])}")
    if "heldout/success" in metrics:
        parts.append(f"held-out {percent(metrics['heldout/success'])}{interval(told)}")
    if metrics.get("heldout/reward", metrics.get("heldout/success")) != metrics.get("heldout/success"):
        parts.append(f"held-out reward {short(metrics['heldout/reward'])}")
    parts += [f"{label} {percent(metrics[name])}" for name, label, usual in SHARES if metrics.get(name, usual) != usual]
    parts += [f"{label} {short(metrics[name])}" for name, label in PLAIN.items() if name in metrics]
    if cut := metrics.get("paths/truncated_context"):
        parts.append(f"cut by the context {short(cut)}")
    if foreign := metrics.get("calls/foreign"):
        parts.append(f"calls of other families {short(foreign)}")
    if (left_s := told.left_s(now_s)) is not None:
        parts.append(f"eta {duration(left_s)}")
    return "  ".join(parts)
