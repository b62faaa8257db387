"""The benchmark of GPUs runs on a CPU: every part of it, with the smallest workloads."""

from pathlib import Path

import pytest
import torch
from tests.bench.in_process import execute

FILE = Path(__file__).parents[2] / "bench" / "gpu.py"


def test_every_part_runs_on_a_cpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("VLLM_PYTHON", raising=False)
    # It leaves the default there.
    monkeypatch.setenv("BOUGH_ATTENTION", "auto")
    execute(FILE, ["--device", "cpu", "--size", "tiny", "--dtype", "float32", "--quick"], monkeypatch)
    lines = capsys.readouterr().out.splitlines()
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
def test_no_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(FILE, ["--only", "trees"], monkeypatch)
    assert ended.value.code != 0
    assert "got no GPU; need one, or --device cpu" in capsys.readouterr().err
