"""Methods, worlds, policy presets and recipes, found and described from their files, without an import of them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bough.config.installed import installed

PACKAGE = Path(__file__).parent.parent

FUNCTIONS = {"methods": "Methods", "worlds": "Worlds", "policies": "Policy presets", "recipes": "Recipes"}
"""The packages of functions, with their titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A piece, or a function of `methods`, `worlds`, `policies` or `recipes`.

    Attributes:
        room: The group in which it is listed.
        name: Its name.
        text: Its docstring.
        fields: Its settings: name, type and default.
    """

    room: str
    name: str
    text: str
    fields: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.text.partition("\n")[0]


def names(*rooms: str) -> Iterator[str]:
    """The functions of `methods`, `worlds`, `policies` or `recipes` by name; worlds of installed packages are last."""
    own = [name for room in rooms for name in modules(room)]
    others = [name for name in installed("bough.worlds") if "worlds" in rooms and name not in own]
    return iter([*own, *others])


@cache
def modules(room: str) -> Mapping[str, str]:
    """The module of each function of a package, by the function's name, which is that of its file.

    The function of `worlds/NAME/preset.py` has the name of the folder. A world's variants are in its `variants/`.
    """
    folder = PACKAGE / room
    found = {file.stem: file for file in (*folder.glob("*.py"), *folder.glob("*/variants/*.py"))}
    found |= {file.parent.name: file for file in folder.glob("*/preset.py")}
    found.pop("__init__", None)
    return {name: ".".join(found[name].with_suffix("").relative_to(PACKAGE.parent).parts) for name in sorted(found)}


def own_entries(room: str) -> Iterator[Entry]:
    """The functions of a package of Bough."""
    return (_entry(room, name) for name in modules(room))


@cache
def _entry(room: str, name: str) -> Entry:
    """A method, world, policy preset or recipe, parsed from its file without an import."""
    file = PACKAGE.joinpath(*modules(room)[name].split(".")[1:]).with_suffix(".py")
    parsed = ast.parse(file.read_text(encoding="utf-8"))
    made = next(each for each in parsed.body if isinstance(each, ast.FunctionDef) and each.name == name)
    defaults = [None] * (len(made.args.args) - len(made.args.defaults)) + made.args.defaults + made.args.kw_defaults
    fields = [
        f"{each.arg}: {ast.unparse(each.annotation)} = {ast.unparse(default)}"
        for each, default in zip([*made.args.args, *made.args.kwonlyargs], defaults, strict=True)
        if each.annotation and default
    ]
    return Entry(room=room, name=name, text=ast.get_docstring(made) or "", fields=tuple(fields))


def entry_lines(found: Sequence[Entry]) -> list[str]:
    """A line for each entry: its name and its summary."""
    width = max(len(entry.name) for entry in found)
    return [f"  {entry.name:{width}}  {entry.summary}" for entry in found]
