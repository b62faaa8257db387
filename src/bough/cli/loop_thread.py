"""An event loop in a thread: for code that waits for a person between operations, also in a notebook."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from bough.lazy import torch

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines, one after the other, in the event loop of a second thread. A context manager."""

    def __enter__(self) -> "LoopThread":
        self._loop = asyncio.new_event_loop()
        threads = torch.get_num_threads()

        def work() -> None:
            # PyTorch resets the number of threads in a new thread.
            torch.set_num_threads(threads)
            self._loop.run_forever()

        self._thread = threading.Thread(target=work, name="bough-loop", daemon=True)
        self._thread.start()
        return self

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(main, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
