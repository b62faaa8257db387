"""The command line."""

import io
import logging
import os
import sys
import threading
import time

NOISY = ("torchao", "torch.utils._pytree")
"""Loggers that warn while transformers imports torchao, if it is installed; Bough does not use torchao."""


THREADS_S = 30.0
"""How long threads of the user's code may go on after the end of a command."""


def main() -> None:
    """Run `bough`."""
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    for stream in (sys.stdout, sys.stderr):
        # Characters outside the terminal's encoding are escaped instead of raising.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Imported here, so that importing the package for its pieces never loads the command line.
    from bough.cli.app import app

    try:
        app()
    except SystemExit as end:
        threading.Thread(target=_end_threads, args=(end,), name="bough-end", daemon=True).start()
        raise


def _end_threads(end: SystemExit) -> None:
    """End the process when threads of the user's code keep it, which Python would wait for without a limit."""
    main_thread = threading.main_thread()
    left = [each for each in threading.enumerate() if not each.daemon and each is not main_thread]
    until = time.monotonic() + THREADS_S
    for each in left:
        each.join(max(0.0, until - time.monotonic()))
    if names := [repr(each.name) for each in left if each.is_alive()]:
        print(
            f"the command is done, and threads still run: {', '.join(names)}; they are ended. Start such threads with "
            "daemon=True, or end them in `close` of the environment",
            file=sys.stderr,
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0 if end.code is None else 1)
