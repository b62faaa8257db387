"""Writes docs/systems.md from the docstrings: every published system with its paper, commands and differences.

python scripts/systems.py          # whether the page is up to date
python scripts/systems.py --write
python scripts/systems.py --run --jobs 2    # every command of the page, with few tasks and steps
python scripts/systems.py --run treepo mcts
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import rule_server
from bough.cli.catalogue import ROOMS, Entry
from bough.cli.systems import COMMAND, System, systems

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = (
    "results",
    "which_method",
    "selftraining",
    "search",
    "growth",
    "worlds/alfworld",
    "worlds/search",
    "worlds/sql",
)
TRAINED = (
    "steps=1",
    "batch_tasks=2",
    "warmup.epochs=3",
    "warmup.demonstrations=8",
    "tasks.count=40",
    "evaluation.tasks.count=2",
)
SERVER = "http://localhost:11434/v1"
"""The server of a model in commands; `--run` replaces it by one that answers by rule."""
RUN = re.compile(r"\bruns/(\w+)")
TRAIN = re.compile(r"bough train '?(\w+)(?:\([^']*\)')?(?: --on (\w+))?$")
"""A command without changes: the run is named after the method and the world, or after the recipe."""
SEARCHED_SMALL = ("evaluation.tasks.count=2", "limits.tree_tokens=300")
HEAD = (
    "What Bough has of published systems, from the docstrings; `bough list systems` is the short form. The commands "
    "train in minutes to an hour on a laptop; `python scripts/systems.py --run` runs all of them with few tasks and "
    "steps. A search takes the run of a recipe: `bough train grpo_sokoban` comes before it, or "
    "`bough train alpha_math_sokoban` where the search needs a critic."
)


def page() -> str:
    """The page."""
    found = systems()
    lines = [f"* [{each.name}](#{_anchor(each)}), {each.paper}: {each.line}" for each in found]
    intro = ["# Published systems", _wrapped(HEAD), "\n".join(map(_wrapped, lines))]
    return "\n\n".join([*intro, "\n".join(map(_section, found))])


def _section(system: System) -> str:
    """Name, paper, commands, the first docstring without its first line, pieces, results."""
    parts = [f"## {_heading(system)}", _wrapped(f"arXiv {system.paper}. {_capital(system.line)}")]
    parts.append("```sh\n" + "\n".join(system.commands) + "\n```")
    body = system.entries[0].text.partition("\n")[2]
    kept = body.split("\nArgs:")[0].split("\nAttributes:")[0].split("\nRaises:")[0].split("\nReturns:")[0]
    parts += [_paragraph(each) for each in COMMAND.sub("", kept).strip("\n").split("\n\n") if each.strip()]
    pieces = [f"`{each.name}` ({_title(each)})" for each in system.entries]
    parts.append(_wrapped(f"In Bough: {', '.join(pieces)}."))
    if measured := _measured(system):
        parts.append(_wrapped(f"Measured in {', '.join(measured)}."))
    return "\n\n".join(parts) + "\n"


def _measured(system: System) -> list[str]:
    """Links to the pages with a table that has a row of it."""
    named = _names(system)
    links: list[str] = []
    for name in RESULTS:
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        cells = {line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| ")}
        if named & cells:
            links.append(f"[{text.partition(chr(10))[0].removeprefix('# ')}]({name}.md)")
    return links


def _title(entry: Entry) -> str:
    return ROOMS[entry.room]


def _heading(system: System) -> str:
    return system.name.replace("`", "")


def _anchor(system: System) -> str:
    kept = (each for each in _heading(system).lower() if each.isalnum() or each in " -_")
    return "".join(kept).replace(" ", "-")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _run(only: list[str], jobs: int) -> None:
    """Execute the commands in a temporary folder; print the duration of each, and the messages of those that fail."""
    found = [each for system in systems() if not only or _names(system) & {*only} for each in system.commands]
    searched = [_makes(run, found) for run in sorted({run for each in found for run in RUN.findall(each)})]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool, rule_server.serve() as url:
        fine = [_shown(command, [], folder, url) for command in searched]
        others = [each for each in dict.fromkeys(found) if each not in searched]
        out = [
            ["--out", f"others/{number}"] if each.startswith("bough train") else []
            for number, each in enumerate(others)
        ]
        fine += pool.map(_shown, others, out, repeat(folder), repeat(url))
    if not all(fine):
        sys.exit(f"{fine.count(False)} of {len(fine)} commands failed")


def _makes(run: str, commands: list[str]) -> str:
    """The command that makes `runs/RUN`: one of the commands, else that of a recipe."""
    trained = (
        each for each in commands if (train := TRAIN.match(each)) and "_".join(filter(None, train.groups())) == run
    )
    return next(trained, f"bough train {run}")


def _shown(command: str, options: list[str], folder: str, url: str) -> bool:
    """Execute a command and print how that went; returns whether it succeeded."""
    begin = time.monotonic()
    error = _command(command.replace(SERVER, url), options, folder)
    print(f"{time.monotonic() - begin:6.1f} s  {'FAILED' if error else 'ok':6}  {command}", flush=True)
    if error:
        print(textwrap.indent(error, "    "), flush=True)
    return not error


def _command(command: str, options: list[str], folder: str) -> str:
    """Execute a command with small settings; returns the end of its messages where it fails, else ""."""
    words = shlex.split(command)[1:]
    changes = TRAINED if words[0] == "train" else SEARCHED_SMALL
    done = subprocess.run(
        [sys.executable, "-m", "bough", *words, *options, *changes],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr[-1500:] or "no message"


def _paragraph(text: str) -> str:
    """A paragraph of a docstring; formulas, which are indented, stay as they are."""
    return (
        textwrap.indent(textwrap.dedent(text), "    ") if text.startswith("    ") else _wrapped(" ".join(text.split()))
    )


def _names(system: System) -> set[str]:
    return {system.name, *(entry.name for entry in system.entries)}


def main() -> None:
    """Check or write the page, or execute its commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="names of systems or pieces, with --run")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="commands at the same time")
    arguments = parser.parse_args()
    if arguments.run:
        _run(arguments.only, arguments.jobs)
        return
    file = DOCS / "systems.md"
    if arguments.write:
        file.write_text(page(), encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != page():
        sys.exit("docs/systems.md is not what the docstrings say; run: python scripts/systems.py --write")


if __name__ == "__main__":
    main()
