"""Finds the user's Python files that a module consists of: its own, and those of its local imports."""

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bough.usercode.load import PREFIX
from bough.usercode.origin import is_users


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, with what its import statements are relative to.

    Attributes:
        path: The file.
        package: The dotted name of its package; "" outside of packages.
        root: The folder in which its top packages lie.
    """

    path: Path
    package: str
    root: Path


def source_files(modules: Iterable[ModuleType] = (), files: Iterable[Path] = ()) -> list[Path]:
    """The user's Python files behind modules and files: their own and, at any depth, the imported ones.

    Import statements are read, not executed, in functions too. A module that is imported by a computed name is missing.

    Args:
        modules: Imported modules; those of Bough, installed packages and the standard library are left out.
        files: Python files, as scripts.

    Returns:
        Absolute paths, sorted, each once.
    """
    pending = [source for module in modules if (source := _of_module(module)) is not None]
    pending += [_Source(path.resolve(), "", path.resolve().parent) for path in files]
    found: dict[Path, None] = {}
    while pending:
        source = pending.pop()
        if source.path not in found:
            found[source.path] = None
            pending += _imported(source)
    return sorted(found)


def _of_module(module: ModuleType) -> _Source | None:
    """The source of a module; None for one without a file of the user."""
    name = module.__spec__.name if module.__spec__ is not None else module.__name__
    file = vars(module).get("__file__")
    if not file or not file.endswith(".py") or not is_users(file):
        return None
    path = Path(file).resolve()
    if name == "__main__" or name.startswith(PREFIX):
        return _Source(path, "", path.parent)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _Source(path, package, path.parents[name.count(".") + (path.name == "__init__.py")])


def _imported(source: _Source) -> Iterator[_Source]:
    """The user's files that a file names in import statements."""
    try:
        tree = ast.parse(source.path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        for name in _names(node, source.package):
            # Importing a.b runs a/__init__.py too.
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                if (found := _located(".".join(parts[:end]), source.root)) is not None:
                    yield found


def _names(node: ast.AST, package: str) -> Iterator[str]:
    """The absolute names that may be modules in an import statement."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        try:
            above = importlib.util.resolve_name("." * node.level + (node.module or ""), package or None)
        except ImportError:
            return
        yield from (f"{above}.{alias.name}" for alias in node.names)


def _located(name: str, root: Path) -> _Source | None:
    """The user's file of a module: as it is imported in this process, or below the importing file's root."""
    if (module := sys.modules.get(name)) is not None:
        return _of_module(module)
    below = root.joinpath(*name.split("."))
    for path in (below / "__init__.py", below.with_name(f"{below.name}.py")):
        if path.is_file() and is_users(str(path)):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            return _Source(path.resolve(), package, root)
    return None
