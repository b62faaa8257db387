"""Writes the pages of the guide as a site, for Zensical: those of docs/, and those that the code has.

PYTHONPATH=bench python scripts/guide_site.py build   # build/guide, build/mkdocs.yml; `make docs` makes build/site

    worlds/NAME.md    src/bough/worlds/NAME/README.md
    systems/NAME.md   a published system: its commands, what differs from the paper, where it was measured
    commands.md       `bough --help` of every command
    api/NAME.md       the public names of the package bough.NAME
"""

import argparse
import ast
import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from bough.cli.app import app
from bough.cli.systems import systems
from page import SECTIONS, age
from result_rows import read_rows
from systems import anchor, heading, section

ROOT = Path(__file__).parents[1]
SOURCE, DOCS = ROOT / "src" / "bough", ROOT / "docs"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> dict[str, str]:
    """The text of every page, by its place on the site."""
    found = {file.name: _linked(_aged(file), DOCS, file.name) for file in DOCS.glob("*.md")}
    for name in _worlds():
        readme = SOURCE / "worlds" / name / "README.md"
        found[f"worlds/{name}.md"] = _linked(readme.read_text(encoding="utf-8"), readme.parent, f"worlds/{name}.md")
    for system in systems():
        place = f"systems/{anchor(system)}.md"
        found[place] = _linked(section(system), DOCS, place)
        # Its row in the table of all systems leads to its page.
        found["systems.md"] = found["systems.md"].replace(
            f"\n| {heading(system)} |", f"\n| [{heading(system)}]({place}) |"
        )
    found |= {f"api/{name}.md": f"# bough.{name}\n\n::: bough.{name}\n" for name in _packages()}
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="bough")
    return found | {"commands.md": get_docs_for_click(obj=command, ctx=context, name="bough", title="Commands")}


def _aged(file: Path) -> str:
    """A page of docs/, with a line at each table that is older than the code that it measures."""
    return age(file.name, file.read_text(encoding="utf-8"), read_rows(SECTIONS))


def _linked(text: str, folder: Path, place: str) -> str:
    """A page whose links lead to pages of the site; what is no page of it is named without a link."""

    def lead(link: re.Match[str]) -> str:
        image, shown, target = link.groups()
        path, _, part = target.partition("#")
        if "://" in target or not path:
            return link[0]
        there = _place((folder / path).resolve())
        if there is None:
            return shown
        return f"{image}[{shown}]({os.path.relpath(there, Path(place).parent)}{'#' * bool(part)}{part})"

    return LINK.sub(lead, text)


def _place(file: Path) -> str | None:
    """Where a file of the repository is on the site; None for one that is not."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix()
    if file.name == "README.md" and file.parent.parent == SOURCE / "worlds":
        return f"worlds/{file.parent.name}.md"
    return "index.md" if file == ROOT / "README.md" else None


def _worlds() -> list[str]:
    return sorted(file.parent.name for file in SOURCE.glob("worlds/*/README.md"))


def _packages() -> list[str]:
    """The packages with names for users: those with `__all__`."""
    return sorted(file.parent.name for file in SOURCE.glob("*/__init__.py") if _exports(file))


def _exports(file: Path) -> bool:
    assigned = [each.targets[0] for each in ast.parse(file.read_text()).body if isinstance(each, ast.Assign)]
    return any(isinstance(each, ast.Name) and each.id == "__all__" for each in assigned)


def write(build: Path) -> None:
    """Write pages and settings in the place of those that are there."""
    guide = build / "guide"
    shutil.rmtree(guide, ignore_errors=True)
    for place, text in pages().items():
        (guide / place).parent.mkdir(parents=True, exist_ok=True)
        (guide / place).write_text(text, encoding="utf-8")
    for picture in (*DOCS.glob("*.svg"), *DOCS.glob("*.png")):
        shutil.copy(picture, guide)
    settings = tomllib.loads((DOCS / "site.toml").read_text())
    folders = {
        "worlds/": [f"worlds/{name}.md" for name in _worlds()],
        "api/": [f"api/{name}.md" for name in _packages()],
    }
    settings |= {"nav": _filled(settings["nav"], folders), "docs_dir": "guide", "site_dir": "site"}
    settings["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(SOURCE.parent)]
    # JSON is YAML.
    (build / "mkdocs.yml").write_text(json.dumps(settings, indent=1))


def _filled(nav: object, folders: Mapping[str, list[str]]) -> object:
    """A navigation with the pages of a folder in place of its name."""
    match nav:
        case str():
            return folders.get(nav, nav)
        case list():
            return [_filled(each, folders) for each in nav]
        case dict():
            return {title: _filled(inner, folders) for title, inner in nav.items()}
        case _:
            raise TypeError(f"docs/site.toml: got {nav!r} in nav; need a page, a folder, a list, or a title with one")


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
