"""The page of traces has every search and every way to grow trees that its script draws."""

import subprocess
import sys
from pathlib import Path


def test_the_page_has_each_search() -> None:
    script = Path(__file__).parents[2] / "scripts/traces.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
