"""The package bfcl-eval: its modules and its data files, without its dependencies."""

import importlib
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

INSTALL = "pip install --no-deps --requirement constraints/bfcl.txt (bfcl-eval 2026.3.23 and mpmath)"
BACKEND = "bfcl_eval.constants.executable_backend_config"
CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
PROMPTS = "bfcl_eval.constants.default_prompts"


def module(name: str) -> Any:
    """Returns a module of bfcl-eval, imported when first needed. The modules named above import no dependency.

    Raises:
        ImportError: when bfcl-eval or mpmath is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"BFCL: got no module {error.name!r}; need {INSTALL}", name=error.name) from error


@lru_cache(maxsize=1)
def folder() -> Path:
    """The folder of the package.

    Raises:
        ImportError: when it is not installed.
    """
    return Path(module("bfcl_eval").__path__[0])


def data_file(name: str) -> Path:
    """A file of the package's folder `data`.

    Raises:
        ImportError: when the installed version lacks it.
    """
    path = folder() / "data" / name
    if not path.is_file():
        raise ImportError(
            f"BFCL: got an installation of bfcl-eval without data/{name}; need {INSTALL}", name="bfcl_eval"
        )
    return path


@lru_cache(maxsize=1)
def package_hash() -> str:
    """SHA-256 of the episodes, the ground truth, the functions' docs and the API classes, in hexadecimal digits."""
    root = folder()
    files = [
        *root.glob("data/BFCL_v4_multi_turn_*.json"),
        *root.glob("data/possible_answer/BFCL_v4_multi_turn_*.json"),
        *root.glob("data/multi_turn_func_doc/*.json"),
        *root.glob("eval_checker/multi_turn_eval/**/*.py"),
    ]
    digest = sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
