"""The manifest of a run: versions and machine."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bough.version import __version__

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "peft", "reasoning-gym", "textworld")


def versions() -> dict[str, object]:
    """What the last bits of results depend on: bough, python, processor, packages (null where not installed)."""
    return {
        "bough": __version__,
        "python": platform.python_version(),
        "processor": _processor(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def describe() -> dict[str, object]:
    """The versions and the machine of a run that starts now in the working directory.

    Returns:
        Values that JSON can write: those of `versions`, platform, folder (the working directory), git (its commit and
        whether it was altered; null outside a repository), created (UTC).
    """
    return {
        **versions(),
        "platform": platform.platform(),
        "folder": str(Path.cwd()),
        "git": _git(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The processor's name; on Linux `platform.processor()` returns only the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            named = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(named, platform.machine())
    except OSError:
        return platform.processor() or platform.machine()


def _git() -> dict[str, object] | None:
    commit = _ask_git("rev-parse", "HEAD")
    return None if commit is None else {"commit": commit, "altered": bool(_ask_git("status", "--porcelain"))}


def _ask_git(*arguments: str) -> str | None:
    try:
        ran = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()
