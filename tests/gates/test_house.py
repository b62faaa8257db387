"""Rules of the house that no off-the-shelf gate knows."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT

SRC = Path(__file__).parents[2] / "src" / "bough"
FILES = sorted(SRC.rglob("*.py"))
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "textworld", "peft", "tensorboard", "openai"}

EVERY_METHOD = """
from bough.cli.find import find_run, names
from bough.config import dump, load, override
from bough.train.check import check

for name in names("methods", "recipes"):
    small = ["steps=1", "optimizer=Optimizer(epochs=2)", "policy.device=cpu", "engine=Local(slots=8)"]
    run = override(find_run(name), small)
    check(run)
    assert load(dump(run)) == run
"""


@pytest.fixture(autouse=True, scope="module")
def forget() -> Iterator[None]:
    """Later collections of garbage need not search a million nodes of syntax trees."""
    yield
    parsed.cache_clear()


def test_files_and_functions_are_short() -> None:
    long = [f"{file.relative_to(SRC)} has {lines} lines" for file in FILES if (lines := len(parsed(file)[0])) > 400]
    long += [
        f"{file.relative_to(SRC)}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for file in FILES
        for node in ast.walk(parsed(file)[1])
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno - node.lineno >= 60
    ]
    assert not long, "got " + "; ".join(long) + "; need files of at most 400 lines, functions of at most 60"


@cache
def parsed(file: Path) -> tuple[list[str], ast.Module]:
    """The lines of a file and its syntax tree."""
    text = file.read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text)


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import bough", {"torch", "transformers", "numpy"}),
        ("import bough.tree", {"torch", "transformers", "jaxtyping"}),
        (
            "import bough.env, bough.credit, bough.reward, bough.curate, bough.store, bough.view, bough.policy\n"
            "import bough.engine, bough.context, bough.objective, bough.explore, bough.train, bough.evaluate",
            HEAVY,
        ),
        pytest.param(EVERY_METHOD, HEAVY, id="every method made, changed, checked, written and read"),
        ("import bough.cli.app", {"torch", "transformers"}),
        ("from bough.cli.overview import show_counts; show_counts()", {"torch", "transformers"}),
    ],
)
def test_imports_are_light(statement: str, absent: set[str]) -> None:
    assert not absent & _modules_after(statement)


def test_the_tree_imports_only_numpy() -> None:
    ours = _modules_after("import bough.tree") - _modules_after("import numpy, hashlib, dataclasses, typing, enum")
    assert {name.partition(".")[0] for name in ours} <= {"bough", "numpy", *sys.stdlib_module_names}


def test_every_module_named_in_the_docs_exists() -> None:
    import re

    for page in PAGES:
        for path in re.findall(r"`((?:src|bench|tests|docs|scripts|examples)/[\w/.-]+)`", page.read_text()):
            assert (ROOT / path).exists(), f"{page.relative_to(ROOT)} names {path}"


def _imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{name.name}" for name in node.names)]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_few_modules_import_the_kernels() -> None:
    users = {
        str(file.relative_to(SRC))
        for file in FILES
        if file.parent.name != "kernels"
        for node in ast.walk(parsed(file)[1])
        if any(name.startswith("bough.kernels") for name in _imported(node))
    }
    assert len(users) <= 4, f"got {sorted(users)}; need at most four modules that import bough.kernels"


READ_INFO = {
    "tree": "the accessors of `texts.py`, and the annotations that a user's parser names",
    "view": "shows the texts to people",
}
"""The rooms that read string keys of `info`, with the reason."""


def _is_info(node: ast.expr) -> bool:
    """Whether an expression is the info of a node: `info`, `draft.info`, `tree.info[node]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "") == "info"


def _reads_info(node: ast.AST) -> bool:
    """Whether a node of the syntax tree reads a key of an info; `tree.info[node]` alone is no key."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_info(node.value):
        key = node.slice
        named = isinstance(key, ast.Name) and key.id.isupper()
        return named or (isinstance(key, ast.Constant) and isinstance(key.value, str))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _is_info(node.comparators[0])
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("get", "pop", "setdefault") and _is_info(called.value)


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ('tree.info[leaf]["success"]', True),
        ('node.info.get("valid") is False', True),
        ('"fault" in tree.info[0]', True),
        ("tree.info[leaf].get(STUB)", True),
        ("info[STUB]", True),
        ("text_in(tree.info[leaf])", False),
        ('node.info["text"] = step', False),
    ],
)
def test_a_read_key_of_info_is_found(line: str, reads: bool) -> None:
    assert any(map(_reads_info, ast.walk(ast.parse(line)))) == reads


def test_what_code_reads_is_no_key_of_info() -> None:
    found = [
        f"{file.relative_to(SRC)}:{node.lineno}"
        for file in FILES
        if file.relative_to(SRC).parts[0] not in READ_INFO
        for node in ast.walk(parsed(file)[1])
        if _reads_info(node)
    ]
    assert not found, f"got reads of keys of info at {found}; need a column of Tree, or an accessor of bough.tree.texts"


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest imports them by name alone."""
    names = [file.name for file in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
