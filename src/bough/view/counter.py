"""Shows the progress of a list of items."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def counter(title: str, terminal: bool | None = None) -> Generator[Callable[[int, int], None], None, None]:
    """Show the number of finished items: a bar on a terminal, else a plain line for each tenth.

    Args:
        title: The operation.
        terminal: Whether to draw a bar; detects a terminal on standard output by default.
    """
    if sys.stdout.isatty() if terminal is None else terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)
        return

    def tell(done: int, of: int) -> None:
        if done == of or done * 10 // of > (done - 1) * 10 // of:
            print(f"{title}: {done} of {of}", flush=True)

    yield tell
