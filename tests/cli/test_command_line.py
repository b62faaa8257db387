"""The command line as a whole: version, completion, choices, lists, imports."""

import os
import subprocess
import sys
from typing import get_args

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bough.cli.app import app
from bough.cli.catalogue import ROOMS, entries
from bough.cli.completion import complete_listed, complete_method, complete_policy, complete_run, complete_world
from bough.cli.functions import own_entries
from bough.cli.options import CheckName, ExportKind, Library, RewardLabels, TaskSplit
from bough.cli.overview import SHELVES
from bough.config.config import fields_of
from bough.critics import RewardModel
from bough.env import Split
from bough.evaluate.envs.check_env import NAMES
from bough.export.export import KINDS
from bough.train.like import DEFAULTS
from bough.version import __version__


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"bough {__version__}\n"


@pytest.mark.parametrize("words", [("list", "methods"), ("list", "recipes"), ("--version",), ("train", "--help")])
def test_what_imports_little(words: tuple[str, ...]) -> None:
    """`bough list methods` reads files; seconds go with imports."""
    code = f"import sys; sys.argv[1:] = {words!r}\nfrom bough.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "heavy = {'torch', 'transformers', 'numpy', 'bough.train', 'bough.credit', 'bough.env'} & {*sys.modules}\n"
    code += "print(*heavy, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == ""
    assert ran.stdout


def test_methods_are_listed_as_they_are_imported() -> None:
    for room in ("methods", "recipes", "policies"):
        assert [*own_entries(room)] == [entry for entry in entries() if entry.room == room]


def test_completion_of_a_shell() -> None:
    words = {"_BOUGH_COMPLETE": "complete_bash", "COMP_WORDS": "bough train grp", "COMP_CWORD": "2"}
    code = "import sys; sys.argv = ['bough']\nfrom bough.cli import main\n"
    code += "try: main()\nfinally: print(*{'torch', 'numpy'} & {*sys.modules}, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | words, check=False
    )
    assert ran.stderr.strip() == ""
    assert {"grpo", "grpo_frozenlake", "grpo_tcr"} <= {*ran.stdout.split()}
    assert "gigpo" not in ran.stdout


def test_names_are_completed(tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("first", "other"):
        os.makedirs(f"runs/{name}")
        open(f"runs/{name}/config.json", "w").close()
    assert complete_run("runs/f") == ["runs/first"]
    assert complete_run("") == ["runs/first", "runs/other"]
    assert "runs/other" in complete_method("runs/")
    assert complete_world("soko") == ["sokoban"]
    assert complete_policy("smol") == ["smollm2"]
    assert complete_listed("gigpo_") == ["gigpo_frozenlake"]
    assert complete_listed("system") == ["systems"]


def test_choices_are_those_of_the_code() -> None:
    assert [*Library] == [*DEFAULTS]
    assert [*ExportKind] == [*KINDS]
    assert (*CheckName,) == NAMES
    assert (*TaskSplit,) == get_args(Split)
    assert (*RewardLabels,) == get_args(fields_of(RewardModel)["labels"])


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("train", "grpo", "--like", "x"), Library),
        (("export", "a", "--out", "b", "--what", "x"), ExportKind),
        (("train-reward", "a", "--out", "b", "--labels", "x"), RewardLabels),
        (("chat", "a", "--split", "x"), TaskSplit),
        (("check-env", "shop", "--only", "x"), CheckName),
    ],
)
def test_a_wrong_choice_lists_the_choices(words: tuple[str, ...], listed: type) -> None:
    said = CliRunner().invoke(app, [*words])
    assert said.exit_code == 2
    shown = " ".join(said.stderr.replace("│", " ").split())
    assert all(f"'{name}'" in shown for name in listed), shown


def test_files_that_a_command_writes_are_named_by_out() -> None:
    for name, command in get_command(app).commands.items():  # pyright: ignore[reportAttributeAccessIssue]
        for each in command.params:
            if (each.help if hasattr(each, "help") else "").endswith("to write."):
                assert each.name == "out", name
                assert each.param_type_name == "option", name


def test_the_list_is_one_screen() -> None:
    shown = CliRunner().invoke(app, ["list"]).stdout
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    counts = dict.fromkeys(ROOMS, 0)
    for entry in entries():
        counts[entry.room] += 1
    assert all(f"{room} {count}" in shown for room, count in counts.items() if count)


def test_each_group_is_on_a_shelf() -> None:
    assert sorted(room for rooms in SHELVES.values() for room in rooms) == sorted(ROOMS)
