"""What tests need and a machine may lack: without it a test is skipped, with the command that installs it."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from bough.env.sandbox import Sandbox, SandboxError
from bough.kernels import build
from bough.worlds.miniwob.chromium import find_chromium


def _compiler() -> None:
    try:
        build.compiler()
    except OSError as error:
        raise OSError(f"{error}; do: apt-get install g++") from error


def _java() -> None:
    if shutil.which("java") is None:
        raise OSError("found no program java; do: apt-get install default-jre-headless")


def _time() -> None:
    if "BOUGH_TESTS_SLOW" not in os.environ:
        raise OSError("it takes a minute or more; do: make test-bench")


def _axe() -> None:
    if not AXE.is_file():
        raise OSError(f"found no {AXE}; do: make test-viewer")


AXE = Path(sys.prefix) / "axe" / "axe.min.js"
"""The checker of accessibility, of the npm package axe-core."""
PROGRAMS: Mapping[str, Callable[[], object]] = {
    "sandbox": lambda: Sandbox().check(),
    "compiler": _compiler,
    "java": _java,
    "chromium": lambda: find_chromium(""),
    "axe": _axe,
    "time": _time,
}
"""What the system, or who starts the tests, must have: a check that raises where it is missing, with the command."""
WORLDS, SCALE, HARNESSES = "make test-worlds", "make test-scale", "make test-harnesses"
LOGGERS = "make test-loggers"
PACKAGES: Mapping[str, str] = {
    "alfworld": WORLDS,
    "fast_downward": "apt-get install cmake g++; make alfworld",
    "langchain_openai": HARNESSES,
    "minisweagent": HARNESSES,
    "miniwob": WORLDS,
    "mlflow": LOGGERS,
    "opentelemetry.sdk.trace": LOGGERS,
    "playwright": "make test-viewer",
    "prometheus_client": "make test",
    "pyarrow": "make test",
    "pydantic_ai": HARNESSES,
    "ray": SCALE,
    "reasoning_gym": WORLDS,
    "scienceworld": WORLDS,
    "smolagents": HARNESSES,
    "trackio": LOGGERS,
    "verifiers": WORLDS,
    "wandb": LOGGERS,
}
"""Packages that not every test finds, and the target that installs them. Without any other a test fails."""
WORLD_NEEDS: Mapping[str, tuple[str, ...]] = {
    "alfworld": ("alfworld",),
    "alfworld_long": ("alfworld",),
    "code": ("sandbox",),
    "miniwob": ("miniwob", "chromium"),
    "reasoning": ("reasoning_gym",),
    "scienceworld": ("scienceworld", "java"),
}


def need(*names: str) -> None:
    """Skip a test, or a file, without what it needs; fail where the variable BOUGH_TESTS_NEED names it."""
    for name in names:
        if problem := _problem(name):
            if name in os.environ.get("BOUGH_TESTS_NEED", "").split(","):
                pytest.fail(f"BOUGH_TESTS_NEED has {name}: {problem}", pytrace=False)
            pytest.skip(problem, allow_module_level=True)


def need_world(world: str) -> None:
    """Skip a test without what a world needs."""
    need(*WORLD_NEEDS.get(world, ()))


def _problem(name: str) -> str:
    if name in PACKAGES:
        # A folder of tests with the name of a package has no origin.
        try:
            found = find_spec(name)
        except ModuleNotFoundError:  # of the package around it
            found = None
        return "" if found and found.origin else f"found no package {name}; do: {PACKAGES[name]}"
    try:
        PROGRAMS[name]()
    except (ImportError, OSError, SandboxError) as error:
        return str(error)
    return ""
