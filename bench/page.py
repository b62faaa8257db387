"""What is measured goes into a page between two markers, so that the words around it stay.

    python bench/page.py    # writes the sections of all pages again, from bench/results/sections.jsonl

Each section is a row of that file, with the commit at which it was measured and the files of what its script imports.
The site names the sections whose files have changed since (`age`).
"""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from result_rows import RESULTS, ROOT, Row, add_row, changed, commit, read_rows

DOCS = ROOT / "docs"
SECTIONS = RESULTS / "sections.jsonl"


def write(page: str, name: str, text: str, *, script: Path | None = None) -> None:
    """Put text between `<!-- NAME -->` and `<!-- end of NAME -->` of a page, and keep it as a row of `SECTIONS`.

    Results with a file of their own are written by `put`.

    Args:
        page: Its name in docs/.
        name: Of the section.
        text: What was measured.
        script: What measured it; None for the script that runs.

    Raises:
        ValueError: when the page lacks the markers.
    """
    script = script or Path(str(sys.modules["__main__"].__file__))
    row = {"page": page, "section": name, "commit": commit(), "sources": imported(script), "text": text}
    put(page, name, shown(row))
    add_row(SECTIONS, row, ("page", "section"))


def put(page: str, name: str, text: str) -> None:
    """Put text between the markers of a page.

    Raises:
        ValueError: when the page lacks them.
    """
    path = DOCS / page
    before, begin, rest = path.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not (begin and end):
        raise ValueError(f"{path}: got no markers for {name!r}; need `<!-- {name} -->` and `<!-- end of {name} -->`")
    path.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


def shown(row: Row) -> str:
    """The text of a section, with the commit below it."""
    return f"{row['text']}\n\nMeasured at commit {row['commit'][:8]}."


def imported(script: Path) -> list[str]:
    """The files of the names that a script imports from Bough."""
    files = set[Path]()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bough."):
            module = importlib.import_module(str(node.module))
            files |= {_file(getattr(module, each.name, module), module) for each in node.names}
    return sorted(str(file.relative_to(ROOT)) for file in files if file.is_relative_to(ROOT))


def _file(value: object, module: object) -> Path:
    """The file that defines a value; that of the module for a constant."""
    try:
        return Path(inspect.getfile(value))  # pyright: ignore[reportArgumentType]
    except TypeError:
        return Path(str(getattr(module, "__file__", "")))


def age(page: str, text: str, rows: Iterable[Row], is_older: Callable[[Row], bool] = changed) -> str:
    """A page with a line below each section that is older than the code that it measures.

    Args:
        page: Its name in docs/.
        text: Its text.
        rows: Of `SECTIONS`.
        is_older: Whether the code of a row has changed since.
    """
    for row in rows:
        if row["page"] == page and is_older(row):
            end = f"<!-- end of {row['section']} -->"
            text = text.replace(
                end, f"**Older than its code**: the code that this table measures has changed since.\n{end}"
            )
    return text


def sections(text: str) -> dict[str, str]:
    """What stands between the markers of a page, by their names."""
    return {found[1]: found[2] for found in re.finditer(r"<!-- (.+?) -->\n(.*?)\n<!-- end of \1 -->", text, re.DOTALL)}


@contextmanager
def section(name: str, *, keep: bool) -> Iterator[Callable[[str], None]]:
    """Print lines as they are measured and, if they are to be kept, put them into docs/performance.md at the end."""
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    yield say
    if keep:
        write("performance.md", name, "\n".join(lines))


if __name__ == "__main__":
    for each in read_rows(SECTIONS):
        put(each["page"], each["section"], shown(each))
