"""No code mixes tensors of two devices: updates, generation and whole runs on a simulated device; see `simulated`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """The errors of the checks, which run in a process of their own: one import of PyTorch for all."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("", "src", "bench"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.device.checks"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("check", ["mixing", "attention", "update", "generation", "run"])
def test_on_the_simulated_device(check: str, errors: dict[str, str]) -> None:
    assert check not in errors, errors[check]
