"""Names in docstrings and docs exist: attributes, classes, modules, and the files of CONTRIBUTING's table."""

import ast
import builtins
import importlib
import pkgutil
import re
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.docs.pages import PAGES, ROOT

import bough
from bough.config.installed import Group

SRC = ROOT / "src" / "bough"
REFERENCE = re.compile(r"`([A-Z][A-Za-z]+)\.([a-z_]+)`")
"""Such as `Rollout.advance`; an attribute of an attribute is not checked."""
DOTTED = re.compile(r"`(bough(?:\.\w+)+)`")
CLASS = re.compile(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)?)[`(]")
OF_LIBRARIES = {"OneOf", "GatewayParameters", "GatewayProperty", "Taskset"}
"""Classes of optional libraries that docstrings name."""
PLACES = re.compile(r"`([\w/.]+/)(NAME\.py|\w+\.py)`")


@cache
def _modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.walk_packages(bough.__path__, "bough.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


@cache
def _classes() -> dict[str, list[type]]:
    """The classes of Bough by name."""
    found: dict[str, list[type]] = {}
    for module in _modules():
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__.startswith("bough."):
                found.setdefault(value.__name__, []).append(value)
    return found


@cache
def _assigned(owner: type) -> frozenset[str]:
    """The attributes that a class's methods assign to `self`, and its annotations."""
    names: set[str] = set()
    for each in owner.__mro__:
        names |= vars(each).get("__annotations__", {}).keys()
    file = Path(importlib.import_module(owner.__module__).__file__ or "")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
            names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return frozenset(names)


def _has(owner: type, name: str) -> bool:
    known = {field.name for field in fields(owner)} if is_dataclass(owner) else set()
    return hasattr(owner, name) or name in known or name in _assigned(owner)


def _texts() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield str(page.relative_to(ROOT)), page.read_text()
    for file in sorted((ROOT / "src").rglob("*.py")):
        yield str(file.relative_to(ROOT)), file.read_text()


def test_named_attributes_exist() -> None:
    wrong = {
        f"{where}: `{owner}.{name}`"
        for where, text in _texts()
        for owner, name in REFERENCE.findall(text)
        if owner in _classes() and not any(_has(each, name) for each in _classes()[owner])
    }
    assert not wrong


@cache
def _known() -> frozenset[str]:
    """The names in Bough's modules and in Python."""
    ours = {name for module in _modules() for name in vars(module)}
    return frozenset(ours | set(dir(builtins)) | set(dir(typing)) | OF_LIBRARIES)


def _unknown_classes(source: str) -> set[str]:
    """Classes that a docstring names, and that neither Bough, Python nor the file itself has."""
    tree = ast.parse(source)
    known = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    known |= {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(each) or "" for each in ast.walk(tree) if isinstance(each, documented)]
    return {name for text in texts for name in CLASS.findall(text)} - known - _known()


def test_named_classes_exist() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    assert {str(file.relative_to(ROOT)): wrong for file in files if (wrong := _unknown_classes(file.read_text()))} == {}
    assert _unknown_classes('"""The `Appetites` of `Rollout(n=1)`, a `Path`."""') == {"Appetites"}


def test_dotted_names_exist() -> None:
    known = typing.get_args(Group)
    wrong = [
        f"{where}: {name}"
        for where, text in _texts()
        for name in DOTTED.findall(text)
        if name not in known and not _is_dotted(name)
    ]
    assert not wrong
    assert not _is_dotted("bough.train.loss_inputs")


def _is_dotted(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_the_table_of_new_pieces_names_places_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(("| a ", "| an "))]
    assert len(rows) > 10
    for row in rows:
        shown = row.replace("worlds/NAME", "worlds/alfworld").replace("VARIANT.py", "alfworld_long.py")
        for folder, file in PLACES.findall(shown):
            place = next(base / folder for base in (ROOT, SRC) if (base / folder).is_dir())
            assert file == "NAME.py" or (place / file).is_file(), row
            package = ".".join(place.relative_to(SRC.parent).parts) if file == "__init__.py" else ""
            assert not package or f"from {package}." in (place / file).read_text(), row


def test_a_name_that_does_not_exist_is_found() -> None:
    from bough.rollout import Rollout

    assert _has(Rollout, "advance")
    assert not _has(Rollout, "sit_down")
