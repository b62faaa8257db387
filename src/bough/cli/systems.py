"""`bough list systems` and docs/systems.md: the published systems, read from the docstrings that name their paper."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bough.cli.catalogue import ROOMS, Entry, entries

TITLE = re.compile(r"(?:Experimental: )?(?P<name>[^:]+?),? \(([^()]*arXiv (?P<paper>\d{4}\.\d{5})[^()]*)\)")
COMMAND = re.compile(r"^Try: `(bough [^`]+)`\.?$", re.MULTILINE)

TRAIN = re.compile(r"bough train '?(?P<name>\w+)(?:\([^']*\)')?(?: --on (?P<world>\w+))?")
"""A command that trains; without `name=` its run is named after the method and the world, or after the recipe."""

COMMANDS: Mapping[str, str] = {
    "methods": "bough train {name} --on sokoban",
    "recipes": "bough train {name}",
    "search": "bough search runs/{run} '{name}()'",
}
"""The rooms whose entries are systems of their own; other pieces belong to the system with the same paper."""

PLACES = ("worlds", "policies", "env")
"""The rooms whose entries name the paper of a task or a model, which is no system."""

SEARCHED, WITH_CRITIC = "grpo_sokoban", "alpha_math_sokoban"
"""The recipes whose runs are searched; the second where a search needs a critic."""


@dataclass(frozen=True, kw_only=True)
class System:
    """A published system.

    Attributes:
        paper: Its arXiv number.
        entries: Everything of Bough whose docstring begins with the paper, methods first.
    """

    paper: str
    entries: tuple[Entry, ...]

    @cached_property
    def name(self) -> str:
        """The name that the first docstring gives."""
        return _title(self.entries[0]).group("name")

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that run it, each once; no two runs of training have one name."""
        return _named(list(dict.fromkeys(command for entry in self.entries for command in commands_of(entry))))

    @property
    def line(self) -> str:
        """What it does: the first line of its first docstring, after the name and the paper."""
        return self.entries[0].summary[_title(self.entries[0]).end() :].lstrip(": ")


def systems() -> list[System]:
    """The systems, by name. The first paper of a docstring counts; the first entry of a system has a command."""
    by_paper: dict[str, list[Entry]] = {}
    for entry in entries():
        if entry.room not in PLACES and (title := TITLE.match(entry.summary)) is not None:
            by_paper.setdefault(title["paper"], []).append(entry)
    found = [System(paper=paper, entries=tuple(each)) for paper, each in by_paper.items()]
    return sorted((each for each in found if commands_of(each.entries[0])), key=lambda each: each.name.lower())


def show_systems() -> str:
    """A line for each system: its name, its paper, and the entries that it consists of."""
    found = systems()
    width = max(len(each.name) for each in found)
    lines = ["Published systems"]
    for each in found:
        parts = ", ".join(f"{entry.name} ({entry.room})" for entry in each.entries)
        lines.append(f"  {each.name:{width}}  {each.paper}  {parts}")
    return "\n".join([*lines, "", "`bough list NAME` shows one whole. docs/systems.md has their commands."])


def commands_of(entry: Entry) -> list[str]:
    """Its docstring's lines "Try: `bough ...`"; without one, the command of its room."""
    run = WITH_CRITIC if "needs a critic" in entry.summary else SEARCHED
    of_room = [COMMANDS[entry.room].format(name=entry.name, run=run)] if entry.room in COMMANDS else []
    return [" ".join(each.split()) for each in COMMAND.findall(entry.text)] or of_room


def _named(commands: Sequence[str]) -> tuple[str, ...]:
    """The commands, with `name=` where a recipe's run or that of a command before has the same folder."""
    trained = [TRAIN.match(each) for each in commands]
    taken = {found["name"] for found in trained if found and not found["world"]}
    named: list[str] = []
    for command, found in zip(commands, trained, strict=True):
        own = f"{found['name']}_{found['world']}" if found and found["world"] else ""
        name, number = own, 2
        while name and name in taken:
            name, number = f"{own}_{number}", number + 1
        taken.add(name)
        named.append(command if name == own else f"{command} name={name}")
    return tuple(named)


def _title(entry: Entry) -> re.Match[str]:
    title = TITLE.match(entry.summary)
    assert title is not None, f"{ROOMS[entry.room]}: {entry.name} has no paper"
    return title
