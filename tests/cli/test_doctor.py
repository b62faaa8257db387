"""The text of `bough doctor` on machines with GPUs, with a substitute for `torch.cuda`."""

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bough.batch import flex_attention
from bough.cli import devices
from bough.cli.doctor import EXTRAS
from bough.units import GIB


def machine(monkeypatch: pytest.MonkeyPatch, *gpus: tuple[str, int, tuple[int, int]], nccl: bool = True) -> None:
    """A machine with these GPUs: name, GiB, compute capability."""
    flex_attention.flex_fault.cache_clear()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: gpus[device.index][2])
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda device: SimpleNamespace(
            name=gpus[device.index][0],
            total_memory=gpus[device.index][1] * GIB,
            major=gpus[device.index][2][0],
            minor=gpus[device.index][2][1],
        ),
    )
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: nccl)


def nothing(name: str) -> None:
    """No module is installed."""
    del name


def texts() -> dict[str, str]:
    return {each.about: each.text for each in devices.devices()}


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, ("Big", 80, (9, 0)), ("Old", 16, (7, 5)))
    monkeypatch.setattr(flex_attention, "find_spec", lambda name: name)
    found = texts()
    assert found["gpu 0"] == "Big, 80.0 GiB, compute capability 9.0; bfloat16; FlexAttention"
    assert found["gpu 1"] == (
        "Old, 16.0 GiB, compute capability 7.5; bfloat16 only emulated: take float32; no FlexAttention (it needs "
        "compute capability 8.0, and this GPU has 7.5), so updates make dense masks"
    )
    assert found["ranks"] == "up to 2 have a GPU of their own (ranks=N), by NCCL"
    flex_attention.flex_fault.cache_clear()


def test_one_gpu_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, ("Big", 80, (9, 0)))
    monkeypatch.setattr(flex_attention, "find_spec", nothing)
    found = texts()
    assert "no FlexAttention (it needs Triton, which is not installed; do: pip install triton)" in found["gpu 0"]
    assert found["ranks"] == "1 has a GPU of its own"
    flex_attention.flex_fault.cache_clear()


def test_gpus_without_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, ("Big", 80, (9, 0)), ("Big", 80, (9, 0)), nccl=False)
    (ranks,) = (each for each in devices.devices() if each.about == "ranks")
    assert not ranks.good
    assert ranks.text == "2 GPUs, but PyTorch has no NCCL; leave ranks=1"
    flex_attention.flex_fault.cache_clear()


@pytest.mark.skipif(torch.cuda.device_count() > 0, reason="this machine has a GPU")
def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert texts()["gpu"] == "none (PyTorch is built without CUDA); everything runs on the CPU"
    assert texts()["ranks"] == "share the CPU's threads, by gloo"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert texts()["gpu"] == "none (PyTorch is built for CUDA 13.0 and finds no GPU); everything runs on the CPU"


def test_vllm_in_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_spec", nothing)
    monkeypatch.delenv("VLLM_PYTHON", raising=False)
    assert devices.vllm().text.startswith("not installed; do: pip install 'bough-rl[vllm]', or set VLLM_PYTHON")
    monkeypatch.setenv("VLLM_PYTHON", "no/such/python")
    assert not devices.vllm().good
    monkeypatch.setenv("VLLM_PYTHON", sys.executable)
    assert devices.vllm().text == f"VLLM_PYTHON={sys.executable} has no vLLM; correct it"
    monkeypatch.setattr(devices, "find_spec", lambda name: name)
    assert devices.vllm().text == "in this Python: engine=Vllm"


def test_vllm_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("VLLM_PYTHON", sys.executable)
    monkeypatch.setattr(devices, "find_spec", nothing)
    assert devices.vllm().text == f"in another Python: engine='Vllm(python={sys.executable})'"


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "SHARED_MEMORY", tmp_path)
    assert f"GiB free in {tmp_path}" in devices.shared_memory().text
    monkeypatch.setattr(devices.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**26))
    assert devices.shared_memory().text.startswith(f"0.1 GiB free in {tmp_path}; Local(processes=N) needs room")
    monkeypatch.setattr(devices, "SHARED_MEMORY", tmp_path / "none")
    assert devices.shared_memory().text.startswith("none; ")


def test_every_extra_is_checked() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) | {"vllm"} == set(project["optional-dependencies"])
