"""The page of traces has every search and every way to grow trees that its script draws."""

import runpy
import sys
from pathlib import Path

import pytest


def test_the_page_has_each_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["traces.py"])
    # It exits with a message when the page lacks one.
    runpy.run_path(str(Path(__file__).parents[2] / "scripts/traces.py"), run_name="__main__")
