"""Takes one mechanism out of a copy of the source at a time, and runs the tests that must notice.

python scripts/mutants.py --list                 # the mutations and their results so far
python scripts/mutants.py                        # all that are new, or whose code or tests have changed
python scripts/mutants.py --package learner      # those of scripts/mutants/learner.toml
python scripts/mutants.py --only learner/weight_decay --again

A mutation is a table of `scripts/mutants/PACKAGE.toml`:

    [[mutation]]
    name = "weight_decay"
    file = "learner/optimizer_set.py"
    old = '"weight_decay": settings.weight_decay'
    new = '"weight_decay": 0.0'
    tests = ["tests/learner/test_critic.py::test_weight_decay"]

`file` is a path in `src/bough`, where `old` occurs once. Each mutation is one process of pytest, which stops at its
first failure; all are forks of one that has imported PyTorch. Every result is written to `PACKAGE.jsonl` beside the
list at once: a stopped command continues there.
"""

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[1]
LISTS = Path("scripts", "mutants")
NOT_COPIED = (".git", ".venv", "__pycache__", "runs", ".*_cache", ".hypothesis")
PRELOADED = ("torch", "transformers", "tokenizers", "safetensors", "hypothesis", "beartype", "jaxtyping", "pydantic")
TIMEOUT_S = 600.0
OUTCOMES = {0: "survived", 1: "noticed"}
"""By pytest's exit status: its tests passed, or one failed. Any other is an error."""
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Stale(ValueError):
    """A mutation does not fit the source or the tests."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A change of the source that turns one mechanism off.

    Attributes:
        package: The name of its list.
        name: Its name in the list.
        file: The file, in `src/bough`.
        old: A text that occurs once in the file.
        new: The text in its place.
        tests: Node ids of pytest, of which one at least must fail.
    """

    package: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name among all mutations."""
        return f"{self.package}/{self.name}"

    def mutated(self, root: Path) -> str:
        """The text of the file with the change.

        Raises:
            Stale: when `old` does not occur once, or a test does not exist.
        """
        source = root / "src" / "bough" / self.file
        if not source.is_file():
            raise Stale(f"{self.key}: got the file {self.file}, which is not in src/bough; correct the path")
        text = source.read_text()
        if (count := text.count(self.old)) != 1:
            raise Stale(f"{self.key}: got an `old` that occurs {count} times in {self.file}; need 1, make it fit")
        if self.old == self.new:
            raise Stale(f"{self.key}: got the same text as `old` and `new`; need a change")
        if not self.tests:
            raise Stale(f"{self.key}: got no tests; need one that must fail")
        for test in self.tests:
            file, *names = test.partition("[")[0].split("::")
            if not (root / file).is_file() or not {*names} <= {each.name for each in definitions(root / file)}:
                raise Stale(f"{self.key}: got the test {test}, which does not exist; correct its node id")
        return text.replace(self.old, self.new)

    def problem(self, root: Path) -> str:
        """Why it does not fit; "" when it does."""
        try:
            self.mutated(root)
        except Stale as stale:
            return str(stale)
        return ""

    def hash(self, root: Path) -> str:
        """A hash of the mutation, of the definition that it changes, and of its tests, without comments and docstrings.

        A result counts as long as it is the same.
        """
        source = (root / "src" / "bough" / self.file).read_text()
        texts = [json.dumps(asdict(self)), code(around(ast.parse(source), line_of(source, self.old)))]
        for test in self.tests:
            file, *names = test.partition("[")[0].split("::")
            texts += [code(node) for node in definitions(root / file) if node.name in names]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@cache
def definitions(file: Path) -> tuple[Definition, ...]:
    """The functions and classes of a file of tests."""
    return tuple(node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, Definition))


def line_of(source: str, text: str) -> int:
    """The number of the line with the first word of a text."""
    return source[: source.index(text) + len(text) - len(text.lstrip())].count("\n") + 1


def around(node: ast.AST, line: int) -> ast.AST:
    """The innermost function or class with a line, decorators included; in none, the statement of the module."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            continue
        decorators = child.decorator_list if isinstance(child, Definition) else []
        first = min([child.lineno, *(each.lineno for each in decorators)])
        if first <= line <= (child.end_lineno or first):
            inner = around(child, line)
            return inner if isinstance(inner, Definition) or isinstance(node, ast.Module) else node
    return node


def code(node: ast.AST) -> str:
    """A definition without docstrings, comments and layout."""
    for each in ast.walk(node):
        if isinstance(each, Definition) and ast.get_docstring(each, clean=False) is not None:
            each.body = each.body[1:]
    return ast.dump(node)


def mutations(root: Path) -> list[Mutation]:
    """The mutations of all lists.

    Raises:
        Stale: when two have the same name.
    """
    found = [
        Mutation(package=file.stem, **row | {"tests": tuple(row["tests"])})
        for file in sorted((root / LISTS).glob("*.toml"))
        for row in tomllib.loads(file.read_text())["mutation"]
    ]
    twice = [key for key, count in Counter(each.key for each in found).items() if count > 1]
    if twice:
        raise Stale(f"got several mutations with the names {', '.join(twice)}; need one each")
    return found


class Copy:
    """A copy of the repository for tests: the working tree stays as it is, and may change meanwhile.

    Attributes:
        root: The folder.
    """

    def __init__(self, root: Path, folder: Path, timeout_s: float, preload: Sequence[str]) -> None:
        """Copy all but the history, environments and caches."""
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload([*preload])
        self.root, self._timeout_s = folder / "copy", timeout_s
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        if (root / ".venv").exists():
            (self.root / ".venv").symlink_to((root / ".venv").resolve())

    def outcome(self, mutation: Mutation) -> tuple[str, str]:
        """The outcome of a mutation, and the end of pytest's output."""
        file = self.root / "src" / "bough" / mutation.file
        text, mutated = file.read_text(), mutation.mutated(self.root)
        replace_source(file, mutated)
        try:
            status, output = self.pytest(mutation.tests)
        finally:
            replace_source(file, text)
        return ("timed out" if status is None else OUTCOMES.get(status, f"error {status}")), output

    def passes(self, tests: Sequence[str]) -> bool:
        """Whether all of some tests pass without a mutation."""
        return self.pytest(tests)[0] == 0

    def pytest(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """Run tests up to the first failure: the exit status, None at the time limit, and the end of the output."""
        output = self.root.with_name("output")
        process = self._server.Process(target=run_tests, args=(self.root, tests, output))
        process.start()
        process.join(self._timeout_s * len(tests))
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return None, ""
        return process.exitcode, output.read_text()[-400:]


def run_tests(root: Path, tests: Sequence[str], output: Path) -> None:
    """Run pytest in this process, a fork of one that has imported what all tests import, and end."""
    os.setsid()
    with output.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(root)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root / "src"), os.environ.get("PYTHONPATH"))))
    sys.path[:0] = [str(root / "src"), str(root)]
    sys.exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))


def replace_source(file: Path, text: str) -> None:
    """Write a file of source, without its caches: those of a text of the same size and second would be read."""
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()
    file.write_text(text)


def measure(todo: Sequence[Mutation], copy: Copy) -> Iterator[tuple[Mutation, str, str]]:
    """Each mutation with its outcome, and the end of the output where no test failed as it should.

    The tests of a package run without a mutation first.
    """
    for package in dict.fromkeys(each.package for each in todo):
        some = [each for each in todo if each.package == package]
        clean = copy.passes(list(dict.fromkeys(test for each in some for test in each.tests)))
        for each in some:
            if clean or copy.passes(each.tests):
                yield each, *copy.outcome(each)
            else:
                yield each, "fails without it", ""


def read_results(file: Path) -> dict[str, Mapping[str, str]]:
    """The results of a package, by mutation."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["mutation"]: row for row in rows}


def write_result(file: Path, row: Mapping[str, str]) -> None:
    """Put a result in the place of an earlier one of the same mutation."""
    rows = read_results(file) | {row["mutation"]: row}
    written = file.with_suffix(".tmp")
    written.write_text("".join(json.dumps(rows[key]) + "\n" for key in sorted(rows)))
    written.replace(file)


def commit(root: Path) -> str:
    """The commit of source and tests, with a + when they differ from it."""

    def git(*arguments: str) -> str:
        ran = subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, text=True)
        return ran.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "src", "tests"))


def run(todo: Sequence[Mutation], root: Path, timeout_s: float, preload: Sequence[str]) -> None:
    """Run mutations, print and store each result."""
    with tempfile.TemporaryDirectory() as folder:
        copy, at = Copy(root, Path(folder), timeout_s, preload), commit(root)
        for each, outcome, output in measure(todo, copy):
            row = {"mutation": each.key, "outcome": outcome, "hash": each.hash(copy.root), "commit": at}
            write_result(results_of(root, each.package), row)
            print(f"{each.key}: {outcome}", flush=True)
            if outcome.startswith("error"):
                print(output)


def results_of(root: Path, package: str) -> Path:
    """The file with the results of a package."""
    return root / LISTS / f"{package}.jsonl"


def outcomes(some: Sequence[Mutation], root: Path) -> dict[str, str]:
    """The outcome of each mutation, "not run" without one for the present source and tests."""
    stored = {
        key: row
        for package in {each.package for each in some}
        for key, row in read_results(results_of(root, package)).items()
    }
    rows = {each: stored.get(each.key, {"hash": ""}) for each in some}
    return {each.key: row["outcome"] if row["hash"] == each.hash(root) else "not run" for each, row in rows.items()}


def main() -> int:
    """Run the command; returns 0 when every mutation asked for is noticed, 2 when one does not fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=(), metavar="PACKAGE/NAME", help="these mutations")
    parser.add_argument("--package", nargs="+", default=(), help="the mutations of these lists")
    parser.add_argument("--list", action="store_true", help="print the results, and run nothing")
    parser.add_argument("--again", action="store_true", help="run those with a result too")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds for one test")
    parser.add_argument("--preload", nargs="*", default=PRELOADED, help="modules that the tests share")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    given = parser.parse_args()
    found, asked = mutations(given.root), {*given.only, *given.package}
    if unknown := asked - {name for each in found for name in (each.key, each.package)}:
        parser.error(f"got {', '.join(sorted(unknown))}; need names that --list prints")
    some = [each for each in found if not asked or asked & {each.key, each.package}]
    if stale := [problem for each in some if (problem := each.problem(given.root))]:
        print("\n".join(stale))
        return 2
    known = outcomes(some, given.root)
    if given.list:
        print("\n".join(f"{key}: {outcome}" for key, outcome in known.items()))
    else:
        todo = [each for each in some if given.again or known[each.key] == "not run"]
        run(todo, given.root, given.timeout, given.preload)
        known = outcomes(some, given.root)
    print(", ".join(f"{count} {outcome}" for outcome, count in Counter(known.values()).most_common()))
    return int({*known.values()} != {"noticed"})


if __name__ == "__main__":
    sys.exit(main())
