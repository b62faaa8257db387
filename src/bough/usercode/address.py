"""Addresses of functions: names from which every process imports the same function."""

import importlib
import sys
from collections.abc import Callable, Iterator
from inspect import isclass, ismodule
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, cast

from bough.usercode.load import load_module
from bough.usercode.origin import definition, is_users

_KEYS = dict[Path, str]()
"""The key in `sys.modules` of each file that was found: a search of them all takes milliseconds."""


def address_of(function: Callable[..., Any]) -> str:
    """`module:name`; `/path/to/file.py:name` for a function in a user's file.

    A method's name is `Class.method`, or `object.method` for one of an object at the top of a user's file. A closure, a
    lambda, a `partial` or a callable object has the name that the top of a user's file gives it.

    Raises:
        ValueError: when no name at the top of a module leads to the function (a function in a function, a method of an
            object that is made later).
    """
    for module, name in _names(function):
        address = f"{_place(sys.modules[module])}:{name}"
        if all(map(str.isidentifier, name.split("."))) and find_function(address) == function:
            return address
    raise ValueError(_refusal(function))


def find_function(address: str) -> Callable[..., Any]:
    """Imports the function of an address; the module of a file that is loaded already is not loaded again.

    Raises:
        ValueError: when there is no such function.
        ImportError: when its module cannot be imported.
    """
    place, _, name = address.rpartition(":")
    if not place:
        raise ValueError(f"got the address {address!r} of a function; need path/to/file.py:name or module:name")
    found: object = (
        _of_file(Path(place).expanduser().resolve()) if place.endswith(".py") else importlib.import_module(place)
    )
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"got the address {address!r}; need a function: {place} has no function {name}")
    return cast("Callable[..., Any]", found)


def _names(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Modules, each with a name in it that may lead to the function."""
    owner = getattr(function, "__self__", None)
    if isinstance(function, MethodType) and not isclass(owner):
        yield from ((module, f"{name}.{function.__name__}") for module, name in _names_of(owner))
        return
    if (module := getattr(function, "__module__", None)) in sys.modules:
        yield cast("str", module), getattr(function, "__qualname__", "")
    yield from _names_of(function)


def _names_of(value: object) -> Iterator[tuple[str, str]]:
    """Modules of the user, each with the name at its top that has a value."""
    for key, module in [*sys.modules.items()]:
        held = [*vars(module).items()] if ismodule(cast("object", module)) else []
        if (name := next((name for name, each in held if each is value), "")) and _is_of_user(module):
            yield key, name


def _refusal(function: Callable[..., Any]) -> str:
    """Why a function has no address, and what to do."""
    name = getattr(function, "__qualname__", type(function).__name__)
    got, where = f"the function {name}", f"({definition(function)})"
    todo = (
        "write it by `def` there, or give it a name there, as in `search = make_search(corpus)`; or keep what it uses "
        "in the state of an episode"
    )
    if isinstance(function, MethodType):
        got = f"the method {name} of an object without a name"
        todo = "make the object there, as in `desk = Desk()`, and pass desk.method"
    elif not hasattr(function, "__qualname__"):
        got, todo = f"an object of {type(function).__name__}", "give it a name there, or write a function by `def`"
    return f"got {got} {where}; need one at the top of a module or a file, which other processes can import: {todo}"


def _place(module: ModuleType) -> str:
    """The path of a user's module; the name of another one."""
    return str(Path(module.__file__ or "").resolve()) if _is_of_user(module) else module.__name__


def _is_of_user(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    return bool(file) and file.endswith(".py") and is_users(file)


def _of_file(path: Path) -> ModuleType:
    for key in (_KEYS.get(path, ""), *sys.modules):
        module = sys.modules.get(key)
        if module is not None and _is_file(module, path):
            _KEYS[path] = key
            return module
    return load_module(path)


def _is_file(module: ModuleType, path: Path) -> bool:
    """Whether a module is the one of a file. The value of a key of `sys.modules` may be no module."""
    file = vars(module).get("__file__") if ismodule(cast("object", module)) else None
    return bool(file) and file.endswith(path.name) and Path(file).resolve() == path
