"""Compiles C++ files for this machine on first use and caches the libraries on disk."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-Wno-psabi", "-shared", "-fPIC")


def enabled() -> bool:
    """False when the environment variable `BOUGH_KERNELS` is "off"."""
    return os.environ.get("BOUGH_KERNELS", "on") != "off"


@cache
def load_library(source: Path, *defines: str) -> ctypes.CDLL:
    """Compile a C++ file and load it.

    Args:
        source: The file. It may include the standard library and the headers beside this module.
        defines: Preprocessor definitions, such as "WIDTH=32".

    Raises:
        OSError: when there is no compiler, or it fails; the message names the compiler and the reason.
    """
    here = Path(__file__).parent
    command = [compiler(), *FLAGS, *(("-fopenmp",) if sys.platform == "linux" else ()), *(f"-D{x}" for x in defines)]
    # The key of the cache: flags, the compiler's predefined macros (its version and the processor's features), sources.
    macros = _run([*command, "-dM", "-E", "-x", "c++", os.devnull])
    files = [each.read_bytes() for each in (*sorted(here.glob("*.h")), source)]
    name = hashlib.sha256(b"\0".join([" ".join(command).encode(), macros, *files])).hexdigest()[:32]
    file = _folder() / f"{source.stem}-{name}.so"
    if not file.exists():
        # Concurrent compilations produce the same file; the replacement is atomic.
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            made = Path(folder) / file.name
            _run([*command, f"-I{here}", "-o", str(made), str(source)])
            made.replace(file)
    return ctypes.CDLL(str(file))


def compiler() -> str:
    """The path of this machine's C++ compiler: `CXX` if it is set, else g++ or clang++.

    Raises:
        OSError: when there is none; the message names what was searched for.
    """
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "clang++"]:
        if found := shutil.which(name):
            return found
    raise OSError(f"found no C++ compiler ({wanted or 'g++ or clang++'})")


def _folder() -> Path:
    """A folder that only this user can write to."""
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(home) if home else Path.home() / ".cache") / "bough"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home folder, or it belongs to another user
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK) else _temporary_folder()


@cache
def _temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="bough-"))


def _run(command: list[str]) -> bytes:
    try:
        return subprocess.run(command, check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").splitlines()
        why = next((line for line in lines if "error" in line), f"exit status {error.returncode}")
        raise OSError(f"{command[0]} failed ({why})") from error
