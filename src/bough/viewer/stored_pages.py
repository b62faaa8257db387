"""The viewer's pages without a server: a folder of files, or one file with all in it."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from bough.store import RunDirectory, StoreError
from bough.store.atomic import write_bytes
from bough.units import number_of
from bough.usercode.json_file import json_text
from bough.view import headline
from bough.viewer.one_script import WEB, one_script, one_style
from bough.viewer.parts import Parts
from bough.viewer.run_results import panels
from bough.viewer.runs import Runs
from bough.viewer.stored_answers import Answers, Selection, about_run, about_trees, address, small_or_few
from bough.viewer.tree_answers import TreeAnswers

REPORT = Selection(trees=6, steps=1, most_bytes=3_000_000, whole="bough view shows all")
"""The trees in the report of a run."""

POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy of a page without a server; its script and style are named by their hashes."""

MARK = "bough-pages"
"""The file by which a folder of pages is known, so that it can be written again."""

HEAD = re.compile(r"^<(?:link|script)\b.*\n", re.MULTILINE)


def write_folder(
    folder: Path, runs: Runs, parts: Parts, *, trees: int | None, said: Callable[[str], None] = lambda _: None
) -> int:
    """Write the pages of runs to a folder; any web server, or a browser from the file, opens `index.html`.

    Args:
        folder: The folder; it is made, or has pages of an earlier call, which are replaced.
        runs: The runs.
        parts: Their tokenizers and environments.
        trees: Most trees of a step; None for all trees of a small run, and a few a step of a larger one.
        said: Called with a line for each run.

    Returns:
        The number of runs that were written; damaged ones are in the list with their reason.

    Raises:
        StoreError: when the folder has other files, or can't be written.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise StoreError(f"{folder}: got a folder with other files; need an empty one, or pages of an earlier --export")
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    for old in (folder / "answers").glob("*.js"):
        old.unlink()
    first: Answers = {"/api/runs": {"runs": runs.rows()}}
    files: dict[str, str] = {}
    written, damaged = 0, {str(row["name"]): row["damaged"] for row in runs.rows() if "damaged" in row}
    for name, directory in runs.directories().items():
        if name in damaged:
            said(f"{name}: {damaged[name]}")
            continue
        answers, written = TreeAnswers(parts), written + 1
        first |= about_run(runs, name)
        count = 0
        for found in about_trees(directory, name, answers, small_or_few(directory, answers, trees)):
            tree = next((path.removesuffix("/nodes") for path in found if path.endswith("/nodes")), None)
            if tree is None:
                first |= found
                continue
            file = f"answers/{len(files)}.js"
            write_bytes(folder / file, f"boughAnswers({json_text(found)});\n".encode())
            files[tree], count = file, count + 1
        said(f"{name}: {number_of(count, 'tree')}")
    script, style = one_script().encode(), one_style().encode()
    for file, content in (("bough.js", script), ("bough.css", style), (MARK, b"")):
        write_bytes(folder / file, content)
    links = '<link rel="stylesheet" href="bough.css">\n<script src="bough.js" defer></script>\n'
    policy = POLICY.format(script="'self'", style="'self'")
    page = _page("Bough", policy, links, "", first, files, noscript="These pages need JavaScript.")
    write_bytes(folder / "index.html", page.encode())
    return written


def write_report(path: Path, directory: RunDirectory, parts: Parts) -> str:
    """Write the pages of one run, with a few trees of its last step, as one file that loads nothing.

    Args:
        path: The file; it is written completely or not at all.
        directory: The run's folder.
        parts: Its tokenizer; the report has no pictures of states.

    Returns:
        The result in one sentence.

    Raises:
        StoreError: when a file of the run is damaged, or the disk is full.
    """
    place = directory.path.absolute()
    runs, name = Runs([place]), place.name
    found: Answers = {"/api/runs": {"runs": runs.rows()}, **about_run(runs, name)}
    for some in about_trees(place, name, TreeAnswers(parts), REPORT):
        found |= some
    script, style = one_script(), one_style()
    policy = POLICY.format(script=_hash(script), style=_hash(style))
    result = headline(panels(directory))
    row = found[address(name)]
    page = _page(
        f"{name} · Bough",
        policy,
        f"<style>{style}</style>\n",
        f"<script>{script}</script>\n",
        found,
        {},
        start=f"#/run/{quote(name, safe='')}",
        noscript=f"{name}: {row['state']} {row['why']}. {result}",
    )
    write_bytes(path, page.encode(errors="replace"))
    return result


def _page(
    title: str,
    policy: str,
    head: str,
    foot: str,
    answers: Answers,
    files: Mapping[str, str],
    start: str = "#/runs",
    noscript: str = "",
) -> str:
    """The page of the viewer with answers in it.

    Args:
        title: Its title.
        policy: Its content security policy.
        head: Its style, and scripts that wait for the page.
        foot: Its script at the end.
        answers: Answers by address.
        files: The files with further answers, by the address of their tree.
        start: The address of the first page, with #.
        noscript: What is shown where no script runs.
    """
    icon = base64.b64encode((WEB / "icon.svg").read_bytes()).decode()
    own = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">\n{head}'
    )
    data = f"{_data('answers', answers)}{_data('files', dict(files))}<noscript><p>{escape(noscript)}</p></noscript>\n"
    page = HEAD.sub("", (WEB / "index.html").read_text(encoding="utf-8"))
    page = page.replace('<html lang="en">', f'<html lang="en" data-start="{escape(start)}">')
    page = page.replace("<title>Bough</title>", f"<title>{escape(title)}</title>")
    before, body, after = page.partition("</body>")
    top, close, rest = before.partition("</head>")
    return f"{top}{own}{close}{rest}{data}{foot}{body}{after}"


def _data(name: str, value: object) -> str:
    """JSON data in a page; no text in them can end the element."""
    text = json_text(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _hash(content: str) -> str:
    """The source of the content security policy that is this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
