"""What a run was made of: the files of its pieces, its data, its tasks, and versions; compared when it goes on."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, cast

from bough.config.config import ConfigError, dump
from bough.env.env import HashedData
from bough.launch import places
from bough.store import RunDirectory, describe, digest_tasks, fingerprint, versions
from bough.train.pinned import hub_repos
from bough.train.resolve import run_pieces
from bough.train.run import Run
from bough.tree import Task
from bough.usercode.sources import source_files

FOLDERS = ("folder", "path", "corpus", "games", "data", "run")
"""Fields in which a name without a slash may be a folder of data."""

COMMANDS = ("agent", "command")
"""Fields with a command, whose words may be files."""

MAX_CHARACTERS = 4096
"""Longest text that can be a path."""

FUNCTION = re.compile(r"\.py:[\w.]+$")
"""The end of a text that names a function of a file."""

Parts: TypeAlias = Mapping[str, str]
"""Fingerprints by name."""

TITLES = {"train": "the training tasks", "heldout": "the held-out tasks", "environment": "the environment's data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Compares a run with what it was made of, as its manifest has it.

    Attributes:
        directory: The run's directory; without a manifest there is nothing to compare.
        run: The run as it was made.
        accept: Whether to go on with what changed.
        accepted: What changed and was accepted so far, a line each.
        now: By entry of the manifest, the present fingerprints by name.
    """

    directory: RunDirectory
    run: Run
    accept: bool
    accepted: list[str] = field(default_factory=list[str])
    now: dict[str, Parts] = field(default_factory=dict[str, Parts])

    def check_files(self, run: Run) -> None:
        """Refuse changed files of pieces and of data; a file that only one of the two runs names is not compared.

        Args:
            run: The run, or a changed one.

        Raises:
            ConfigError: when a file changed; names it.
        """
        self._compare("files", run_files(run))

    def check_tasks(self, run: Run, tasks: Mapping[str, Sequence[Task]]) -> None:
        """Refuse other tasks than those of the run, for each set whose settings did not change.

        Args:
            run: The run, or a changed one.
            tasks: By "train" and "heldout", its tasks.

        Raises:
            ConfigError: when the tasks of the same settings differ.
        """
        now, before = _sources(run), _sources(self.run)
        found = task_checksums(run, tasks)
        self._compare("data", {name: text for name, text in found.items() if now[name] == before[name]})

    def other_versions(self) -> list[str]:
        """What has another version now than in the manifest: "torch 2.7.0 -> 2.8.0"."""
        before, now = _versions(self.directory.read_manifest()), _versions(versions())
        return [f"{name} {was} -> {now.get(name)}" for name, was in before.items() if now.get(name) != was]

    def record(self, ranks: Sequence[str] = ()) -> list[str]:
        """Write the present fingerprints, the accepted changes, and new places, with the time, to the manifest.

        The next comparison is with these fingerprints.

        Args:
            ranks: The machine of each rank, where there are several.

        Returns:
            Lines for the user about the changes.
        """
        before, lines = self.directory.read_manifest(), self.lines
        at, here = datetime.now(UTC).isoformat(timespec="seconds"), {**places(), "ranks": list(ranks)}
        known = cast("list[dict[str, object]]", before.get("places", []))
        if not known or {**known[-1], "at": None} != {**here, "at": None}:
            known = [*known, {"at": at, **here}]
        if not before:
            self.directory.write_manifest({**describe(), **self.now, "places": known})
        elif not lines:
            self.directory.write_manifest({**before, "places": known})
        else:
            entry = {"at": at, "accepted": self.accepted, "versions": self.other_versions()}
            parts = {kind: {**_parts(before, kind), **found} for kind, found in self.now.items()}
            changes = [*cast("list[object]", before.get("changes", [])), entry]
            self.directory.write_manifest({**before, **versions(), **parts, "changes": changes, "places": known})
        return lines

    @property
    def lines(self) -> list[str]:
        """A line for the user about each accepted change, and one about other versions."""
        lines, others = [f"accepted a change of {line}" for line in self.accepted], self.other_versions()
        if others:
            lines.append(f"other versions than the run was made with: {', '.join(others)}; the last bits may differ")
        return lines

    def _compare(self, kind: str, now: Parts) -> None:
        before = _parts(self.directory.read_manifest(), kind)
        changed = [name for name in now if name in before and before[name] != now[name]]
        lines = [f"{TITLES.get(name, name)}: got {now[name]}; need {before[name]}" for name in changed]
        if lines and not self.accept:
            shown = "".join(f"\n  {line}" for line in lines)
            raise ConfigError(
                f"{self.directory.path} was made of something else:{shown}\nRestore it, or go on with the change: "
                "--accept-changes, in Python accept_changes=True"
            )
        self.accepted.extend(lines)
        self.now[kind] = now


def task_checksums(run: Run, tasks: Mapping[str, Sequence[Task]]) -> dict[str, str]:
    """The checksums of sets of tasks by name, and of the environment's data where it has some."""
    env = run.world.env
    data = env.data_hash if isinstance(env, HashedData) else ""
    return {name: digest_tasks(each) for name, each in tasks.items()} | ({"environment": data} if data else {})


def run_files(run: Run) -> dict[str, str]:
    """The fingerprints of a run's files, by name.

    Returns:
        By absolute path, the user's Python files: those of its pieces, of the functions that settings name as
        file.py:name, and of the scripts in commands, with their local imports. By the text of the setting, the other
        files and the folders that settings name. By name, the commits of models and data sets of the hub.
    """
    values = [piece.value for piece in run_pieces(run)]
    modules = {kind.__module__ for value in values for kind in type(value).__mro__}
    named = {text: path for value in values for text, path in _named(value)}
    scripts = [path for path in named.values() if path.suffix == ".py"]
    code = source_files([sys.modules[name] for name in modules if name in sys.modules], scripts)
    data = {text: path for text, path in named.items() if path not in scripts}
    files = {name: _fingerprint(path) for name, path in {**{str(path): path for path in code}, **data}.items()}
    return {**files, **_revisions(run)}


def _revisions(run: Run) -> dict[str, str]:
    """The commits of the models and data sets of the hub, by name."""
    commits = dict[str, set[str]]()
    for repo in hub_repos(run):
        commits.setdefault(f"the {repo.noun} {repo.name}", set()).add(repo.revision)
    return {name: f"revision {', '.join(sorted(found))}" for name, found in commits.items()}


def _named(value: object) -> Iterator[tuple[str, Path]]:
    """The files and folders that exist and that the fields of a piece name, each with its text."""
    for each in fields(value) if is_dataclass(value) else ():
        folders = each.name in FOLDERS and not each.metadata.get("working_folder")
        for text in _texts(getattr(value, each.name)):
            for word in (text, *(_words(text) if each.name in COMMANDS else ())):
                path = Path(FUNCTION.sub(".py", word)).expanduser()
                if os.path.isfile(path) or (folders and word == text and os.path.isdir(path)):
                    yield word, path


def _texts(value: object) -> Iterator[str]:
    """The texts of one line in a field: itself, or those of a list or a mapping."""
    if isinstance(value, str):
        if value and len(value) <= MAX_CHARACTERS and value.isprintable():
            yield value
    elif isinstance(value, tuple | list):
        yield from (text for each in cast("Sequence[object]", value) if isinstance(each, str) for text in _texts(each))
    elif isinstance(value, Mapping):
        yield from _texts(list(cast("Mapping[object, object]", value).values()))


def _words(text: str) -> list[str]:
    """The words of a command that may be files, such as agent.py in "python agent.py"."""
    try:
        return [word for word in shlex.split(text) if Path(word).suffix and word != text]
    except ValueError:
        return []


def _fingerprint(path: Path) -> str:
    try:
        return fingerprint(path)
    except OSError as error:
        return f"unreadable ({error.strerror})"


def _sources(run: Run) -> dict[str, object]:
    """The settings on which each set of tasks depends."""
    world = run.world
    env = dump(world.env)
    return {
        "train": (env, world.tasks, run.seed),
        "heldout": (env, world.evaluation.tasks, world.evaluation.seed),
        "environment": env,
    }


def _versions(manifest: Mapping[str, object]) -> dict[str, object]:
    named = {name: manifest[name] for name in ("bough", "python", "processor") if name in manifest}
    return {**named, **cast("dict[str, object]", manifest.get("packages", {}))}


def _parts(manifest: Mapping[str, object], kind: str) -> dict[str, str]:
    return cast("dict[str, str]", manifest.get(kind, {}))
