"""Scripts of bench/ and scripts/, run in this process."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def execute(file: Path, options: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script with options, as its command does."""
    monkeypatch.setattr(sys, "argv", [str(file), *options])
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    # Modules of tests may have the names of its neighbours.
    for neighbour in file.parent.glob("*.py"):
        loaded = sys.modules.get(neighbour.stem)
        if loaded is not None and loaded.__file__ != str(neighbour):
            monkeypatch.delitem(sys.modules, neighbour.stem)
    runpy.run_path(str(file), run_name="__main__")
