"""Resolves the name of a piece: one that Bough or an installed package exports, or one of a Python file."""

import dataclasses
import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast, get_args, get_type_hints

from bough.config.config import ConfigError
from bough.config.installed import installed, load_installed, loadable
from bough.config.kinds import wrong_kind
from bough.nearest import unknown
from bough.usercode import load_module
from bough.usercode.origin import describe

Maker: TypeAlias = Callable[..., Any]
"""A dataclass, or a function that returns a piece."""

ROOMS = (
    "env", "context", "guard", "appraise", "ask", "policy", "critics", "engine", "explore", "search", "reward", "hooks",
    "credit", "curate", "objective", "learner", "launch", "rewrite", "roles", "schedule", "searches", "train",
    "loggers", "tracing",
)  # fmt: skip
"""Packages whose pieces can be named without a file."""

PIECE = re.compile(r"^@piece\nclass ([A-Z]\w*)", re.MULTILINE)
"""A class that is made a piece."""

WORLDS = Path(__file__).parents[1] / "worlds"


@cache
def packages(room: str) -> tuple[str, ...]:
    """The packages that export the pieces of a room: its own, and for environments that of each world."""
    worlds = sorted(path.parent.name for path in WORLDS.glob("*/__init__.py")) if room == "env" else []
    return (f"bough.{room}", *(f"bough.worlds.{world}" for world in worlds))


def find_piece(name: str, file: str | None, now: object, annotation: Any, where: str) -> Maker:
    """The dataclass or function with this name.

    Args:
        name: As written, `Grpo` or `rloo`.
        file: The Python file that defines it; None for a piece of Bough or of an installed package.
        now: The present value of the field; pieces of its class are known too.
        annotation: The type of the field; the message lists only pieces that fit it.
        where: The field, for messages.

    Raises:
        ConfigError: when the name is unknown, or its piece does not fit the field; lists the fitting pieces.
    """
    module = None if file is None else import_file(file, where)
    if module is None and name in installed("bough.pieces"):
        load_installed("bough.pieces", name, where, is_own=name in dict(_makers()))
    known = _members(annotation, _kinds(now, annotation)) if module is None else _own(module)
    offered = {each: maker for each, maker in known.items() if not _wrong(annotation, maker)}
    place = "" if module is None else f" in {file}"
    found = known.get(name) if module is None else vars(module).get(name)
    if found is None:
        hint = unknown(name, offered)
        own = "" if module is not None or "did you mean" in hint else "; a piece of your own is path/to/file.py:Name"
        raise ConfigError(f"{where}: {hint}{place}{own}")
    if not _is_maker(found):
        wrong = f"got {name}{place}; need a dataclass, or a function that makes one"
    else:
        wrong = _wrong(annotation, found)
    if wrong:
        raise ConfigError(f"{where}: {wrong}; offered{place}: {', '.join(sorted(offered)) or 'none'}")
    return cast("Maker", found)


def import_file(file: str, where: str) -> ModuleType:
    """Import a Python file of the user.

    Raises:
        ConfigError: when the file does not exist or cannot be imported.
    """
    path = Path(file).expanduser()
    if not os.path.isfile(path):  # False for a name that is too long
        raise ConfigError(f"{where}: there is no file {file}; need path/to/file.py:name")
    try:
        return load_module(path)
    except Exception as error:  # code of the user's runs
        raise ConfigError(f"{where}: {file} cannot be imported: {describe(error)}") from error


def _own(module: ModuleType) -> dict[str, Maker]:
    """The dataclasses and functions that a file defines, without its imports."""
    return {
        name: value
        for name, value in vars(module).items()
        if _is_maker(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def exported(package: str) -> Iterator[tuple[str, Any]]:
    """The classes and functions that a package exports, by name; not the names that it imports on first use.

    So are classes with `@piece` of files that it does not export: a new piece is one new file. A package without
    `__all__` exports from each of its files the function of the file's name.
    """
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        named = ((name, vars(module).get(name)) for name in module.__all__)
        found = chain(named, _unnamed(module))
    else:
        names = (each.name for each in pkgutil.iter_modules(module.__path__))
        found = ((name, vars(importlib.import_module(f"{package}.{name}")).get(name)) for name in names)
    return ((name, value) for name, value in found if inspect.isclass(value) or inspect.isfunction(value))


def _unnamed(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The pieces in files of a package that are not in its `__all__`; only these files are imported."""
    for each in pkgutil.iter_modules(module.__path__):
        file = Path(module.__path__[0], f"{each.name}.py")
        names = [] if each.ispkg else PIECE.findall(file.read_text(encoding="utf-8"))
        for name in {*names} - {*module.__all__}:
            yield name, getattr(importlib.import_module(f"{module.__name__}.{each.name}"), name)


@cache
def _makers() -> Sequence[tuple[str, Maker]]:
    """The dataclasses and functions that the packages of pieces export, by name."""
    exports = (pair for room in ROOMS for package in packages(room) for pair in exported(package))
    return [pair for pair in exports if _is_maker(pair[1])]


def _members(annotation: Any, kinds: Sequence[type]) -> dict[str, Maker]:
    """Bough's pieces by name, and the classes in a field's type; of two with one name the one that fits."""
    found = {name: maker for name, maker in loadable("bough.pieces") if _is_maker(maker)}
    found |= dict(reversed(_makers()))
    found |= {name: maker for name, maker in _makers() if not _wrong(annotation, maker)}
    return found | {kind.__name__: kind for kind in kinds if dataclasses.is_dataclass(kind)}


def _is_maker(value: object) -> bool:
    """Whether a name is a dataclass, or a function that may return one."""
    return (inspect.isclass(value) and dataclasses.is_dataclass(value)) or (
        inspect.isfunction(value) and (made_by(value) is not None or "return" not in value.__annotations__)
    )


def made_by(maker: object) -> type | None:
    """The dataclass that a maker makes: itself, or the return annotation of a function; None for anything else."""
    made: object = maker
    if inspect.isfunction(maker):
        try:
            made = get_type_hints(maker).get("return")
        except NameError:
            return None
    return made if inspect.isclass(made) and dataclasses.is_dataclass(made) else None


def _wrong(annotation: Any, maker: Maker) -> str:
    """The reason why a maker's piece does not fit a field; "" when it fits, or has no return annotation."""
    made = made_by(maker)
    return "" if made is None else wrong_kind(annotation, made)


def _kinds(now: object, annotation: Any) -> list[type]:
    """The classes in a field's type, and those of its present value."""
    items = cast("tuple[object, ...]", now) if isinstance(now, tuple) else (now,)
    return [*_classes(annotation), *(type(item) for item in items)]


def _classes(annotation: Any) -> Iterator[type]:
    """The classes in a type: `Env` in `Sequence[Env] | None`."""
    if inspect.isclass(annotation) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)
