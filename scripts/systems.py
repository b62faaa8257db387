"""Writes docs/systems.md from the docstrings: every published system with its paper and a command.

The site has a page of each, with what differs from the paper (`section`).

python scripts/systems.py          # whether the page is up to date
python scripts/systems.py --write
"""

import argparse
import os
import sys
import textwrap
from pathlib import Path

from bough.cli.catalogue import ROOMS, Entry
from bough.cli.systems import COMMAND, System, systems

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "bench"))

import no_harm  # noqa: E402
import printed_commands  # noqa: E402
from result_rows import read_rows  # noqa: E402

DOCS = ROOT / "docs"
RESULTS = (
    *(DOCS / f"{name}.md" for name in ("results", "which_method", "selftraining", "search", "growth")),
    *(ROOT / "src" / "bough" / "worlds" / name / "README.md" for name in ("alfworld", "search", "sql")),
)
HEAD = (
    "What Bough has of published systems, from the docstrings. `bough list NAME` has the formulas, what differs from "
    "the paper, and the fields; `bough list systems` this table. The commands train in minutes to an hour on a laptop; "
    "`python bench/printed_commands.py --small` runs all of them with few tasks and steps. A search takes the run of a "
    "recipe: `bough train grpo_sokoban` comes before it, or `bough train alpha_math_sokoban` where the search needs a "
    "critic."
)
COLUMNS = "| System | arXiv | What it does | A command |\n|---|---|---|---|"


def page() -> str:
    """The page: a row for each system."""
    return "\n\n".join(["# Published systems", _wrapped(HEAD), "\n".join([COLUMNS, *map(_row, systems())])]) + "\n"


def _row(system: System) -> str:
    cells = (heading(system), f"[{system.paper}](https://arxiv.org/abs/{system.paper})", system.line)
    own = [each for each in system.commands if any(entry.name in each for entry in system.entries)]
    return "| " + " | ".join((*cells, f"`{[*own, *system.commands][0]}`")) + " |"


def section(system: System) -> str:
    """The page of one system: name, paper, commands, the first docstring without its first line, pieces, results."""
    parts = [f"# {heading(system)}", _wrapped(f"arXiv {system.paper}. {_capital(system.line)}")]
    parts.append("```sh\n" + "\n".join(system.commands) + "\n```")
    body = system.entries[0].text.partition("\n")[2]
    kept = body.split("\nArgs:")[0].split("\nAttributes:")[0].split("\nRaises:")[0].split("\nReturns:")[0]
    parts += [_paragraph(each) for each in COMMAND.sub("", kept).strip("\n").split("\n\n") if each.strip()]
    pieces = [f"`{each.name}` ({_title(each)})" for each in system.entries]
    parts.append(_wrapped(f"In Bough: {', '.join(pieces)}."))
    if measured := _measured(system):
        parts.append(_wrapped(f"Measured in {', '.join(measured)}."))
    parts += map(_wrapped, _evidence(system))
    return "\n\n".join(parts) + "\n"


def _evidence(system: System) -> list[str]:
    """What its methods do to a warmed policy, and what its searches solve: the rows of [evidence](evidence.md)."""
    rows = [row for row in read_rows(no_harm.FILE) if not row["failed"]]
    found = [no_harm.sentence(own) for name in _names(system) if (own := [r for r in rows if r["method"] == name])]
    searched = [row for row in read_rows(printed_commands.FILE) if row["verb"] == "search" and not row["failed"]]
    found += [printed_commands.sentence(row) for row in searched if row["command"] in system.commands]
    return sorted(found)


def _measured(system: System) -> list[str]:
    """Links to the pages with a table that has a row of it."""
    named = _names(system)
    links: list[str] = []
    for file in RESULTS:
        text = file.read_text(encoding="utf-8")
        cells = {line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| ")}
        if named & cells:
            links.append(f"[{text.partition(chr(10))[0].removeprefix('# ')}]({os.path.relpath(file, DOCS)})")
    return links


def _title(entry: Entry) -> str:
    return ROOMS[entry.room]


def heading(system: System) -> str:
    """The name of a system as a title."""
    return system.name.replace("`", "")


def anchor(system: System) -> str:
    """The name of a system in addresses."""
    kept = (each for each in heading(system).lower() if each.isalnum() or each in " -_")
    return "".join(kept).replace(" ", "-")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


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
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    file = DOCS / "systems.md"
    if arguments.write:
        file.write_text(page(), encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != page():
        sys.exit("docs/systems.md is not what the docstrings say; run: python scripts/systems.py --write")


if __name__ == "__main__":
    main()
