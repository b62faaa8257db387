"""What there is to choose from, read off the source files: nothing is imported, nothing is registered."""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bough.cli.failure import EXIT_USAGE

ROOT = Path(__file__).parent.parent
ROOMS = {
    "recipes": "Recipes",
    "env": "Environments",
    "policy": "Policies",
    "context": "Contexts",
    "engine": "Engines",
    "explore": "Explorers",
    "search": "Search",
    "reward": "Rewards",
    "credit": "Credit",
    "curate": "Curation",
    "objective": "Objectives",
}
INSIDE = {"search": "explore/search"}
"""Where a room lies that is within another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A piece or a recipe.

    Attributes:
        room: Where it lives.
        name: What it is called.
        text: Its docstring.
        fields: Its settings as written in the source: name, type and default.
    """

    room: str
    name: str
    text: str
    fields: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.text.partition("\n")[0]


def entries() -> Iterator[Entry]:
    """Everything, room by room."""
    for room in ROOMS:
        folder = ROOT / INSIDE.get(room, room)
        exported = _exported(folder / "__init__.py")
        for file in sorted(folder.glob("*.py")):
            if file.name == "__init__.py":
                continue
            module = ast.parse(file.read_text(encoding="utf-8"))
            if room == "recipes":
                yield Entry(room=room, name=file.stem, text=ast.get_docstring(module) or "", fields=())
                continue
            for part in module.body:
                if isinstance(part, ast.ClassDef) and part.name in exported and _is_piece(part):
                    yield Entry(room=room, name=part.name, text=ast.get_docstring(part) or "", fields=_fields(part))
                if isinstance(part, ast.FunctionDef) and part.name in exported and _makes_piece(part, exported):
                    yield Entry(room=room, name=part.name, text=ast.get_docstring(part) or "", fields=())


def show_all() -> str:
    """One line for each entry, under the heading of its room."""
    found = list(entries())
    width = max(len(entry.name) for entry in found)
    lines: list[str] = []
    for room, title in ROOMS.items():
        lines += ["", title]
        lines += [f"  {entry.name:{width}}  {entry.summary}" for entry in found if entry.room == room]
    return "\n".join(
        [*lines[1:], "", "`bough list NAME` shows one whole; `bough train RECIPE field=value ...` trains."]
    )


def show_room(room: str) -> str:
    """One line for each entry of a room."""
    found = [entry for entry in entries() if entry.room == room]
    width = max(len(entry.name) for entry in found)
    return "\n".join([ROOMS[room], *(f"  {entry.name:{width}}  {entry.summary}" for entry in found)])


def show_one(name: str) -> str:
    """An entry with its whole docstring and its fields; exits with a suggestion when there is none of that name."""
    import difflib
    import sys

    found = {entry.name: entry for entry in entries()}
    if name not in found:
        spelt = {known.lower(): known for known in found}
        near = difflib.get_close_matches(name.lower(), spelt, n=1)
        hint = f"did you mean {spelt[near[0]]!r}?" if near else "see `bough list`"
        sys.stderr.write(f"error: unknown name {name!r}; {hint}\n")
        sys.exit(EXIT_USAGE)
    entry = found[name]
    fields = textwrap.indent("\n".join(entry.fields), "    ")
    return f"{entry.name} ({ROOMS[entry.room].lower()})\n\n{entry.text}\n" + (f"\nFields:\n{fields}" if fields else "")


def _exported(init: Path) -> set[str]:
    """The names in a room's `__all__`."""
    for part in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(part, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in part.targets):
            return set(ast.literal_eval(part.value))
    return set()


def _is_piece(part: ast.ClassDef) -> bool:
    """Whether a class is a frozen dataclass that does something: it has a public method, or can be called."""
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in part.decorator_list)
    methods = [
        each.name
        for each in part.body
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not any(ast.unparse(decorator) == "property" for decorator in each.decorator_list)
    ]
    return frozen and any(name == "__call__" or not name.startswith("_") for name in methods)


def _makes_piece(part: ast.FunctionDef, exported: set[str]) -> bool:
    """Whether a function is a piece by another name: it returns one, and can be called with nothing."""
    arguments = part.args
    required = len(arguments.args) - len(arguments.defaults) + sum(value is None for value in arguments.kw_defaults)
    return required == 0 and isinstance(part.returns, ast.Name) and part.returns.id in exported


def _fields(part: ast.ClassDef) -> tuple[str, ...]:
    annotated = [each for each in part.body if isinstance(each, ast.AnnAssign)]
    return tuple(ast.unparse(each) for each in annotated if not ast.unparse(each.annotation).startswith("ClassVar"))
