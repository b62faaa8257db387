"""Names of attributes in docstrings and docs exist."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import bough

ROOT = Path(__file__).parents[2]
REFERENCE = re.compile(r"`([A-Z][A-Za-z]+)\.([a-z_]+)`")
"""Such as `Rollout.advance`; an attribute of an attribute is not checked."""


@cache
def _classes() -> dict[str, list[type]]:
    """The classes of Bough by name."""
    found: dict[str, list[type]] = {}
    for module in pkgutil.walk_packages(bough.__path__, "bough."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
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
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield page.name, page.read_text()
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


def test_a_name_that_does_not_exist_is_found() -> None:
    from bough.rollout import Rollout

    assert _has(Rollout, "advance")
    assert not _has(Rollout, "sit_down")
