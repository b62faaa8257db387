"""The progress of a download: a bar on a terminal, else a line now and then."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from bough.units import GIB, MIB

BAR_S = 0.2
"""Seconds between two changes of the bar."""

LINE_S = 30.0
"""Seconds between two lines, without a terminal."""


def say(line: str) -> None:
    """A line on standard error."""
    print(line, file=sys.stderr, flush=True)


def size_text(size: float) -> str:
    """A number of bytes in GiB, MiB or KiB."""
    unit, name = (GIB, "GiB") if size >= GIB else (MIB, "MiB") if size >= MIB else (1024, "KiB")
    return f"{size / unit:,.1f} {name}"


@contextmanager
def progress(folder: Path, name: str, total: int) -> Generator[None]:
    """Show how much of a download has arrived, as the size of the files in its folder.

    Args:
        folder: The folder of the download, which may not exist yet.
        name: The name of what is downloaded.
        total: The bytes to come.
    """
    before, ended = _size(folder), Event()
    shows = _bar if sys.stderr.isatty() else _lines
    thread = Thread(target=shows, args=(lambda: min(total, _size(folder) - before), name, total, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _bar(arrived: Callable[[], int], name: str, total: int, ended: Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as shown:
        bar = shown.add_task(name, total=total)
        while not ended.wait(BAR_S):
            shown.update(bar, completed=arrived())
        shown.update(bar, completed=arrived())


def _lines(arrived: Callable[[], int], name: str, total: int, ended: Event) -> None:
    while not ended.wait(LINE_S):
        say(f"{name}: {size_text(arrived())} of {size_text(total)}")


def _size(folder: Path) -> int:
    """The bytes of the files of a folder, without links."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # A part is renamed when it is whole.
            with suppress(OSError):
                found += os.lstat(Path(place, name)).st_size
    return found
