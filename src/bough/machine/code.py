"""C++ of ours as code for this machine: compiled when it is first asked for, and found on disk from then on."""

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


@cache
def machine_code(source: Path, *defines: str) -> ctypes.CDLL:
    """A C++ file as a loaded library. It must need nothing but the language's own and the headers beside this file.

    Args:
        source: The file.
        defines: Of the preprocessor, "WIDTH=32".

    Raises:
        OSError: when there is no compiler, or it fails; says which and why.
    """
    here = Path(__file__).parent
    command = [compiler(), *FLAGS, *(("-fopenmp",) if sys.platform == "linux" else ()), *(f"-D{x}" for x in defines)]
    # All that the result depends on: these say what the processor can do, and the compiler's version, too.
    known = _run([*command, "-dM", "-E", "-x", "c++", os.devnull])
    read = [each.read_bytes() for each in (*sorted(here.glob("*.h")), source)]
    name = hashlib.sha256(b"\0".join([" ".join(command).encode(), known, *read])).hexdigest()[:32]
    file = _folder() / f"{source.stem}-{name}.so"
    if not file.exists():
        # Whoever compiles the same at the same time puts the same in its place.
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            made = Path(folder) / file.name
            _run([*command, f"-I{here}", "-o", str(made), str(source)])
            made.replace(file)
    return ctypes.CDLL(str(file))


def compiler() -> str:
    """The C++ compiler of this machine: what CXX names, else g++ or clang++.

    Raises:
        OSError: when there is none; says what was looked for.
    """
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "clang++"]:
        if found := shutil.which(name):
            return found
    raise OSError(f"found no C++ compiler ({wanted or 'g++ or clang++'})")


def _folder() -> Path:
    """Where only this user writes."""
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(home) if home else Path.home() / ".cache") / "bough"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there is no home, or it is not ours
        return _own_folder()
    return folder if os.access(folder, os.W_OK) else _own_folder()


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="bough-"))


def _run(command: list[str]) -> bytes:
    try:
        return subprocess.run(command, check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").splitlines()
        why = next((line for line in said if "error" in line), f"exit status {error.returncode}")
        raise OSError(f"{command[0]} failed ({why})") from error
