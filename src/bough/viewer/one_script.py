"""The front end as one script and one style sheet, for pages that no server answers.

A browser loads no module from a file, so the modules become functions in one classic script.
"""

import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath

WEB = Path(str(files("bough.viewer") / "web"))

STYLES = ("vendor/uPlot.min.css", "style.css")

ENTRY, SERVER_API, STORED_API = "app.js", "api.js", "stored_api.js"
"""The first module; the module for a server, and the one that takes its place."""

IMPORT = re.compile(r'^import (?:\{([^}]*)\}|(\w+)) from "([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
DEFAULT = re.compile(r"^export \{ (\w+) as default \};$", re.MULTILINE)
DYNAMIC = re.compile(r"\bimport\(`\./")


@cache
def one_script() -> str:
    """The modules of the front end as one classic script, in which stored answers take the place of a server.

    Raises:
        ValueError: when a module has an import or export of another form.
    """
    names = sorted(file.relative_to(WEB).as_posix() for file in WEB.rglob("*.js"))
    makers = ",\n".join(f"{json.dumps(name)}: () => {{\n{_body(name)}}}" for name in names if name != SERVER_API)
    return (
        '"use strict";\n(() => {\nconst made$ = {};\nconst module$ = (name) => (made$[name] ??= makers$[name]());\n'
        f"const makers$ = {{\n{makers}\n}};\nmodule$({json.dumps(ENTRY)});\n}})();\n"
    )


@cache
def one_style() -> str:
    """The style sheets of the front end as one."""
    return "\n".join((WEB / name).read_text(encoding="utf-8") for name in STYLES)


def _body(name: str) -> str:
    """The body of the function that makes a module."""
    folder = PurePosixPath(name).parent
    text = (WEB / name).read_text(encoding="utf-8")
    # A library has one default export; other lines with `export` are in its comments.
    exported = [f"default: {value}" for value in DEFAULT.findall(text)] or EXPORT.findall(text)

    def imported(found: re.Match[str]) -> str:
        taken = f"default: {found[2]}" if found[2] else found[1].replace(" as ", ": ")
        return f"const {{ {taken.strip()} }} = module$({json.dumps(_target(folder, found[3]))});"

    text = DEFAULT.sub("", EXPORT.sub("", IMPORT.sub(imported, text)))
    text = DYNAMIC.sub(f"module$(`{folder}/" if folder.name else "module$(`", text)
    if "</script" in text:
        raise ValueError(f"web/{name}: got '</script'; need a script that can stand in a page")
    if left := re.search(r"^(?:import|export)\b.*|\bimport\(.*", text, re.MULTILINE):
        raise ValueError(f"web/{name}: got {left[0][:80]!r}; need an import or export of one of the usual forms")
    return f"{text}\nreturn {{ {', '.join(exported)} }};\n"


def _target(folder: PurePosixPath, address: str) -> str:
    """The name of the module that an import names."""
    parts = list(folder.parts)
    for part in address.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    name = "/".join(parts)
    return STORED_API if name == SERVER_API else name
