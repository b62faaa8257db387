"""Addresses of functions: names from which every process imports the same function."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from bough.usercode.load import load_module
from bough.usercode.origin import is_users


def address_of(function: Callable[..., Any]) -> str:
    """`module:name`; `/path/to/file.py:name` for a function in a user's file.

    Raises:
        ValueError: when the function is not at the top of a module (a lambda, a method, a function in a function).
    """
    module, name = function.__module__, function.__qualname__
    file = vars(sys.modules[module]).get("__file__") if module in sys.modules else None
    place = str(Path(file).resolve()) if file and file.endswith(".py") and is_users(file) else module
    address = f"{place}:{name}"
    if not name.isidentifier() or module not in sys.modules or find_function(address) is not function:
        raise ValueError(f"got the function {name} of {module}; need one at the top of a module or a file, by `def`")
    return address


def find_function(address: str) -> Callable[..., Any]:
    """Imports the function of an address; the module of a file that is loaded already is not loaded again.

    Raises:
        ValueError: when there is no such function.
        ImportError: when its module cannot be imported.
    """
    place, _, name = address.rpartition(":")
    if not place:
        raise ValueError(f"got the address {address!r} of a function; need path/to/file.py:name or module:name")
    module = _of_file(Path(place).expanduser().resolve()) if place.endswith(".py") else importlib.import_module(place)
    found = vars(module).get(name)
    if not callable(found):
        raise ValueError(f"got the address {address!r}; need a function: {place} has no function {name}")
    return cast("Callable[..., Any]", found)


def _of_file(path: Path) -> ModuleType:
    for module in [*sys.modules.values()]:  # None for a module that must not be imported
        file = vars(module).get("__file__") if isinstance(cast("object", module), ModuleType) else None
        if file and file.endswith(path.name) and Path(file).resolve() == path:
            return module
    return load_module(path)
