"""Results of measurements that take hours: a JSON line each, with the commit and the sources they depend on."""

import ast
import dataclasses
import fcntl
import importlib
import inspect
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from bough.cli.functions import PACKAGE
from bough.train import Run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
Row: TypeAlias = dict[str, Any]

RENAMED = {
    "ANY": "UNRESTRICTED",
    "Asks": "QuerySettings",
    "AsksVotes": "VoteSettings",
    "Closing": "Closable",
    "Deviating": "HasKnownDeviations",
    "STUB": "NOT_EXECUTED",
    "PayRange": "RewardRange",
    "Seated": "MultiAgentEnv",
    "anywhere": "answer_at_any_node",
    "carry_out": "execute_first",
    "hopeless": "turns_without_plan",
    "pays": "reward_ranges",
    "reader": "policy_format",
    "shields": "satisfies",
    "story": "prompt_fields",
    "widen": "expansions_per_node",
}
"""Names in the code of measured pieces that have changed since, with the present ones."""


def read_rows(file: Path) -> list[Row]:
    """The rows of a file, in order; none without a file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def add_row(file: Path, row: Mapping[str, Any], key: Sequence[str]) -> None:
    """Add a row in place of the one with the same values of `key`; the file is always whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _locked(file.parent):
        rows = [each for each in read_rows(file) if any(each[name] != row[name] for name in key)]
        rows = sorted([*rows, dict(row)], key=lambda each: [str(each[name]) for name in key])
        new = file.with_suffix(".tmp")
        new.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
        new.replace(file)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes that add rows waiting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def commit() -> str:
    """The commit of the checkout."""
    return _git("rev-parse", "--short=12", "HEAD").strip()


def changed(row: Row) -> bool:
    """Whether the code of a source changed after the row's commit, or after the one at which it was confirmed.

    What computes nothing is no code: comments, docstrings, imports, types and checks of fields. A moved file is the
    same file, and a name in `RENAMED` the same name.
    """
    row = row.get("confirmed", row)
    known = subprocess.run(["git", "cat-file", "-e", row["commit"]], cwd=ROOT, check=False, capture_output=True)
    if known.returncode != 0:
        return True
    kept = [name for name in row["sources"] if (ROOT / name).is_file()]
    gone = {*row["sources"]} - {*kept}
    moved = {old: new for old, new in _moves(ROOT, row["commit"]).items() if old in gone} if gone else {}
    if len(kept) + len(moved) < len({*row["sources"]}):
        return True
    edited = _git("diff", "--name-only", row["commit"], "--", *kept).splitlines() if kept else []
    pairs = {name: name for name in edited} | moved
    return any(
        _code(_git("show", f"{row['commit']}:{old}")) != _code((ROOT / new).read_text()) for old, new in pairs.items()
    )


@cache
def _moves(root: Path, commit: str) -> dict[str, str]:
    """The new names of the files that were moved after a commit, by the old ones."""
    words = ("diff", "--name-status", "--diff-filter=R", "-M", "-l0", "-z", commit)
    # Three fields a move, each with an end: the score, the old name, the new one.
    fields = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return dict(zip(fields[1::3], fields[2::3], strict=True))


def _code(text: str) -> str:
    """A module without comments, docstrings, imports, types and the checks of frozen settings."""
    present = re.sub(r"\b\w+\b", lambda word: RENAMED.get(word[0], word[0]), text)
    return ast.dump(_CodeAlone().visit(ast.parse(present)))


class _CodeAlone(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> None:
        del node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        del node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        # The settings are frozen, so that all it can do is to refuse values.
        if node.name == "__post_init__":
            return None
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = [each for each in node.decorator_list if not _makes_settings(each)]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Constant(None)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node


def _makes_settings(decorator: ast.expr) -> bool:
    """Whether it is `@piece`, or `@dataclass` of frozen fields."""
    if isinstance(decorator, ast.Call):
        frozen = any(each.arg == "frozen" for each in decorator.keywords)
        return frozen and isinstance(decorator.func, ast.Name) and decorator.func.id == "dataclass"
    return isinstance(decorator, ast.Name) and decorator.id == "piece"


def sources(run: Run, *names: str) -> list[str]:
    """Files of a run's method, explorer, rules, environment, and of functions by name: `methods/grpo`."""
    files = {file for part in (run.method, run.world.env) for piece in _pieces(part) for file in _files(type(piece))}
    files |= {str(PACKAGE / f"{name}.py") for name in names}
    rooms = [path for path in map(Path, files) if path.is_relative_to(PACKAGE) and path.parent != PACKAGE / "train"]
    return sorted(str(path.relative_to(ROOT)) for path in rooms)


def _files(piece: type) -> Iterator[str]:
    """The file of a piece's settings, and that of what they build where it is another one."""
    yield inspect.getfile(piece)
    built = getattr(getattr(piece, "build", None), "__annotations__", {}).get("return")
    if isinstance(built, str) and built.startswith("bough."):
        yield inspect.getfile(importlib.import_module(built.rpartition(".")[0]))


def _pieces(value: object) -> Iterator[object]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for each in dataclasses.fields(value):
            yield from _pieces(getattr(value, each.name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _pieces(each)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
