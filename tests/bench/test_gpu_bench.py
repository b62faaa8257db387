"""The benchmark of GPUs runs on a CPU: every part of it, with the smallest workloads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: tests have modules of the same names."""
    kept = {name: value for name, value in os.environ.items() if name != "VLLM_PYTHON"}
    return subprocess.run(
        [sys.executable, "bench/gpu.py", *arguments],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_part_runs_on_a_cpu() -> None:
    done = run("--device", "cpu", "--size", "tiny", "--dtype", "float32", "--quick")
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    for first in (
        "| a prompt of 512, 8 answers of 256, tiny, float32 | 2,552 | ",
        "| 4,000, float32 | no | ",
        "| 2 prompts of 32 x 2 branches, tiny, float32 | ",
        "| `grpo_frozenlake, float32` | ",
        "| tiny, float32 | - | ",
        "| tiny, float32 | 0.",
    ):
        assert sum(line.startswith(first) for line in lines) == 1, first
    assert lines[-1].endswith("; on cpu, 1 rounds")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_gpu() -> None:
    done = run("--only", "trees")
    assert done.returncode != 0
    assert "got no GPU; need one, or --device cpu" in done.stderr
