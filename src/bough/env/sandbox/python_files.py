"""The files that a Python interpreter needs: its executable, its standard library, its shared libraries."""

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bough.env.sandbox.result import SandboxError

PROBE_S = 60.0
"""Limit of the probe in wall seconds; it takes a quarter of a second."""

PROBE = """
import ctypes, json, os, sys, sysconfig, warnings
warnings.simplefilter("ignore")
for folder in [each for each in sys.path if each.endswith("lib-dynload")]:
    for file in sorted(os.listdir(folder)):
        name = file.split(".")[0]
        if "test" not in name and not name.startswith("_xx") and name != "_tkinter":
            try:
                __import__(name)
            except ImportError:
                pass
try:
    ctypes.CDLL("libgcc_s.so.1")  # The C library loads it when a thread ends.
except OSError:
    pass
class Info(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]
found = []
def visit(info, size, data):
    found.append(os.fsdecode(info.contents.name or b""))
    return 0
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
ctypes.CDLL(None).dl_iterate_phdr(kind(visit), None)
base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
folders = [sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")]
packages = [sysconfig.get_path(name, vars=base) for name in ("purelib", "platlib")]
print(json.dumps([getattr(sys, "_base_executable", sys.executable), folders, packages, found]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFiles:
    """The files of an interpreter.

    Attributes:
        executable: Its path, without symbolic links.
        folders: Folders of the standard library.
        packages: Folders for installed packages inside of `folders`.
        libraries: Shared libraries, each by the path at which the loader finds it, with its path without links.
    """

    executable: str
    folders: tuple[str, ...]
    packages: tuple[str, ...]
    libraries: tuple[tuple[str, str], ...]


@lru_cache(maxsize=8)
def python_files(python: str) -> PythonFiles:
    """Starts an interpreter, loads its standard library, and returns the files that it needs.

    Args:
        python: Path of the interpreter; "" for the one that runs. In a virtual environment it is the base interpreter.

    Raises:
        SandboxError: when the interpreter does not start.
    """
    command = [python or sys.executable, "-I", "-c", PROBE]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_S, check=True)
        found: Any = json.loads(run.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SandboxError(f"sandbox: got the interpreter {command[0]!r}, which fails: {error}") from error
    executable, folders, packages, libraries = found
    folders = tuple(dict.fromkeys(map(_real, folders)))
    return PythonFiles(
        executable=_real(executable),
        folders=folders,
        packages=tuple(
            sorted({each for each in map(_real, packages) if _inside(each, folders) and Path(each).is_dir()})
        ),
        libraries=tuple(
            (str(Path(name).parent.resolve() / Path(name).name) if ".." in name else name, _real(name))
            for name in libraries
            if Path(name).is_file() and not _inside(_real(name), folders)
        ),
    )


def _real(path: str) -> str:
    return str(Path(path).resolve())


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)
