"""The list of mutations fits the source and the tests. `scripts/mutants.py` runs them; that takes hours."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripts.mutants import Mutation, definitions, mutations

ROOT = Path(__file__).parents[2]
PROJECT = {
    "src/bough/__init__.py": "",
    "src/bough/add.py": "def add(a, b):\n    return a + b\n\ndef twice(a):\n    return 2 * a\n",
    "tests/test_add.py": "from bough.add import add, twice\n\ndef test_add():\n    assert add(1, 2) == 3\n\n"
    "def test_twice():\n    assert twice(0) == 0\n\ndef test_wrong():\n    assert twice(1) == 1\n",
    "scripts/mutants/add.toml": "".join(
        f'[[mutation]]\nname = "{name}"\nfile = "add.py"\nold = "{old}"\nnew = "{new}"\n'
        f'tests = ["tests/test_add.py::{test}"]\n'
        for name, old, new, test in (
            ("sum", "a + b", "a - b", "test_add"),
            ("factor", "2 * a", "3 * a", "test_twice"),
            ("syntax", "2 * a", "2 * ", "test_twice"),
            ("clean", "2 * a", "3 * a", "test_wrong"),
        )
    ),
}


def test_every_mutation_fits_its_file_and_tests() -> None:
    assert [problem for each in mutations(ROOT) if (problem := each.problem(ROOT))] == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"file": "none.py"}, "not in src/bough"),
        ({"old": "return"}, "occurs 2 times"),
        ({"old": "a * b"}, "occurs 0 times"),
        ({"new": "a + b"}, "same text"),
        ({"tests": ()}, "no tests"),
        ({"tests": ("tests/test_add.py::test_none",)}, "does not exist"),
        ({"tests": ("tests/test_none.py",)}, "does not exist"),
    ],
)
def test_a_stale_mutation_is_named(project: Path, changes: dict[str, str], problem: str) -> None:
    given = {"file": "add.py", "old": "a + b", "new": "a - b", "tests": ("tests/test_add.py::test_add[1]",)}
    assert Mutation(package="add", name="sum", **given).problem(project) == ""
    assert problem in Mutation(package="add", name="sum", **given | changes).problem(project)


def test_the_command_tells_what_is_noticed_from_what_survives(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def command(*arguments: str) -> tuple[int, list[str]]:
        script = [sys.executable, ROOT / "scripts" / "mutants.py", "--root", project, *arguments, "--preload"]
        ran = subprocess.run(script, check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout.splitlines()

    status, printed = command()
    assert status == 1
    assert [line for line in printed if line.startswith("add/")] == [
        "add/sum: noticed",
        "add/factor: survived",
        "add/syntax: error 4",
        "add/clean: fails without it",
    ]
    (project / "tests/test_add.py").write_text(PROJECT["tests/test_add.py"].replace("twice(0) == 0", "twice(1) == 2"))
    assert command("--package", "add", "--list")[1][:2] == ["add/sum: noticed", "add/factor: not run"]
    assert command("--only", "add/factor") == (0, ["add/factor: noticed", "1 noticed"])
    assert command("--only", "add/factor") == (0, ["1 noticed"]), "the result is stored"
    assert (project / "src/bough/add.py").read_text() == PROJECT["src/bough/add.py"]


def test_a_result_counts_until_the_changed_definition_or_a_test_is_another(project: Path) -> None:
    source, test = project / "src/bough/add.py", project / "tests/test_add.py"

    def known(**texts: str) -> bool:
        definitions.cache_clear()
        source.write_text(texts.get("source", PROJECT["src/bough/add.py"]))
        test.write_text(texts.get("test", PROJECT["tests/test_add.py"]))
        return mutation.hash(project) == first

    mutation = Mutation(
        package="add", name="s", file="add.py", old="a + b", new="a - b", tests=("tests/test_add.py::test_add",)
    )
    first = mutation.hash(project)
    kept = PROJECT["src/bough/add.py"]
    assert known(source='"""Sums."""\n\n' + kept.replace("b):\n", 'b):\n    """A sum."""\n'))
    assert known(
        source=kept.replace("2 * a", "3 * a"), test=PROJECT["tests/test_add.py"].replace("(1) == 1", "(1) == 2")
    )
    assert not known(source=kept.replace("def add(a, b)", "@cache\ndef add(a, b)"))
    assert not known(test=PROJECT["tests/test_add.py"].replace("add(1, 2) == 3", "add(1, 2) > 0"))
