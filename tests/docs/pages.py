"""Pages as tests: their Python runs, their commands run, and what they show is what comes out.

Of a page, in one folder and from top to bottom:

    ```python     runs, in one namespace; a block that begins with `# name.py` is written to that file first
    ```console    each line `$ bough ...` runs; the lines below it are its output, with `...` for anything, and any
                  number for a number; a command that is shown to print an error has to fail
    ```sh         is not run: methods, worlds and fields must resolve, options, files and targets exist
"""

import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer
from typer.testing import CliRunner

from bough.cli.app import app
from bough.cli.find import find_run
from bough.config import override

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("README.md")),
]
"""The guide; the page of a world is in its folder."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = r"[\u2212-]?\d[\d.,]*(?:e[\u2212+-]?\d+)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(language=found[1], text=found[2], line=text.count("\n", 0, found.start()) + 2)


def run_page(page: Path) -> None:
    """Run a page in the working directory."""
    module = types.ModuleType(f"page_{page.stem.lower()}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    for block in blocks(page):
        if block.language == "python":
            _run_python(block, page, module)
        elif block.language == "console":
            _run_console(block, page)
        elif block.language == "sh":
            _check_sh(block, page)


def _run_python(block: Block, page: Path, module: types.ModuleType) -> None:
    if name := re.match(r"# (\S+\.py)\n", block.text):
        Path(name[1]).write_text(block.text.partition("\n")[2])
    # Blank lines in front make tracebacks name the page's own lines.
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), module.__dict__)


def _run_console(block: Block, page: Path) -> None:
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        where = f"{page.name}, line {block.line}: {command}"
        name, *arguments = shlex.split(command)
        assert name == "bough", f"{where}: only bough runs in a console block"
        result = CliRunner().invoke(app, arguments)
        printed = result.output
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise AssertionError(where) from result.exception
        assert (result.exit_code != 0) == ("error: " in shown), f"{where}\n{printed}"
        assert re.search(_pattern(shown), printed), f"{where} is shown with\n{shown}\nand printed\n{printed}"


def _pattern(shown: str) -> str:
    """What matches the output that a page shows."""
    lines = shown.rstrip("\n").split("\n")
    return "".join("(?s:.*?)" if line == "..." else _line(line.rstrip()) + r"(?:\n|$)" for line in lines)


def _line(line: str) -> str:
    parts = re.split(rf"(\.\.\.|{NUMBER})", line)
    return (
        "".join(".*" if part == "..." else NUMBER if re.fullmatch(NUMBER, part) else re.escape(part) for part in parts)
        + r"[ ]*"
    )


def _check_sh(block: Block, page: Path) -> None:
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        where = f"{page.name}, line {block.line}: {line}"
        if words[0] == "bough":
            _check_bough(words[1 : words.index(">") if ">" in words else None])
        elif words[0] == "make":
            assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M) for target in words[1:]), where
        for word in words:
            if re.match(r"(bench|scripts|constraints|examples)/", word):
                assert (ROOT / word.partition(":")[0]).is_file(), where


def _check_bough(words: list[str]) -> None:
    """Raise when a command has an unknown option, method, world, policy or field."""
    command = typer.main.get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    given = command.make_context(words[0], words[1:]).params
    # Settings of a file or of a run are those of whoever reads the page.
    if "method" in given and not given.get("config") and not str(given["method"]).startswith("runs/"):
        method, on, policy = (_place(given[name]) for name in ("method", "on", "policy"))
        assert method is not None
        override(find_run(method, on, policy), given["changes"] or [])


def _place(target: str | None) -> str | None:
    """A file of the examples by its whole path: pages run in a folder of their own."""
    return str(ROOT / target) if target and target.startswith("examples/") else target
