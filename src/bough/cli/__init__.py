"""The command line."""

import io
import logging
import sys

NOISY = ("torchao", "torch.utils._pytree")
"""Loggers that warn while transformers imports torchao, if it is installed; Bough does not use torchao."""


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

    app()
