"""Errors in the user's own code: class, file and line; and projects of several files, from any working directory."""

import os
from pathlib import Path

import pytest
from tests.forks import command, script
from tests.talk import ONE_STEP, Bough

USAGE, FAILED = 2, 1

PIECES = """
import os

import torch

from bough.reward import EnvReward
from dataclasses import dataclass, replace
from bough.worlds.frozenlake import FrozenLake
from bough.tree import Kind
from tests.small import run as small


def bonus(tree):
    return {}["bonus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    kind: str = ""

    def __call__(self, group):
        if self.kind == "ours":
            Kind(99)
        try:
            bonus(group[0])
        except KeyError as error:
            raise ValueError("my reward broke") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Pond(FrozenLake):
    def step(self, state, action):
        return bonus(state)

    def start(self, task):
        if self.slip:
            raise ValueError("no such task" + "!" * 2**20)
        return FrozenLake.start(self, task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake(FrozenLake):
    def step(self, state, action):
        os.chdir(os.path.dirname(__file__) + "/elsewhere")
        torch.set_grad_enabled(False)
        os.closerange(0, 3)
        return FrozenLake.step(self, state, action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forking:
    def __call__(self, group):
        os.chdir(os.path.dirname(__file__) + "/elsewhere")
        if os.fork() == 0:
            raise KeyError("child")
        os.wait()
        return EnvReward()(group)


def changing():
    return small().replace(env=Lake(size=3, max_steps=6), rewards=(Forking(),))


def quits():
    os._exit(0)


def reward():
    return small().replace(rewards=(Broken(),), warmup=replace(small().world.warmup, demonstrations=0))


def pond():
    return small().replace(env=Pond(size=3, max_steps=6))


def broken():
    return small().replace(steps=bonus(None))


def refused():
    return small().replace(steps=-1)
"""


def place(file: Path, text: str, function: str) -> str:
    """The place in a message for a line of the pieces."""
    return f"({file}, line {1 + [each.strip() for each in PIECES.splitlines()].index(text)}, in {function})"


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    file = tmp_path / "pieces.py"
    file.write_text(PIECES)
    return file


@pytest.fixture
def bonus(pieces: Path) -> str:
    return place(pieces, 'return {}["bonus"]', "bonus")


def test_an_error_in_a_run_has_its_class_file_line_and_cause(bough: Bough, pieces: Path, bonus: str) -> None:
    error = bough("train", "pieces.py:reward", *ONE_STEP, folder=pieces.parent).error(FAILED)
    raised = place(pieces, 'raise ValueError("my reward broke") from error', "__call__")
    assert error.splitlines()[-2:] == [
        f"error: ValueError: my reward broke {raised}; caused by KeyError: 'bonus' {bonus}",
        "BOUGH_DEBUG=1 shows the whole traceback",
    ]


def test_an_error_in_a_library_names_the_users_line_that_led_there(bough: Bough, pieces: Path) -> None:
    error = bough("train", "pieces.py:reward", *ONE_STEP, "rewards.0.kind=ours", folder=pieces.parent).error(FAILED)
    assert f"error: ValueError: 99 is not a valid Kind {place(pieces, 'Kind(99)', '__call__')}" in error


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_crashes_names_the_users_line(bough: Bough, pieces: Path, bonus: str, workers: int) -> None:
    ask = ("train", "pieces.py:pond", *ONE_STEP, f"workers={workers}")
    error = bough(*ask, folder=pieces.parent).error(FAILED)
    assert f"Pond.step raised KeyError: 'bonus' {bonus}" in error
    assert "none of 3 tasks could be played, each tried 3 times" in error
    error = bough(*ask, "env.slip=0.5", folder=pieces.parent).error(FAILED)
    assert "error: Pond.start raised ValueError: no such task!!!" in error
    raised = place(pieces, 'raise ValueError("no such task" + "!" * 2**20)', "start")
    assert f"... (cut: 1,048,588 characters) {raised}" in error
    assert len(error) < 10_000


def test_an_error_in_a_recipe_names_its_line(bough: Bough, pieces: Path, bonus: str) -> None:
    error = bough("train", "pieces.py:broken", folder=pieces.parent).error(USAGE)
    assert f"error: method 'pieces.py:broken': broken() raised KeyError: 'bonus' {bonus}" in error
    error = bough("train", "pieces.py:refused", folder=pieces.parent).error(USAGE)
    raised = place(pieces, "return small().replace(steps=-1)", "refused")
    assert f"refused() raised ConfigError: Schedule.steps: got -1; need at least 0 {raised}" in error


PROJECT = {
    "recipe.py": """
from dataclasses import replace
from pathlib import Path
from pond_of_project import Pond
from shop_of_project.reward import Paid
from bough.policy import Pretrained
from tests.small import run as small

def run():
    return small().replace(env=Pond(rules="rules.txt", size=3, max_steps=6), rewards=(Paid(),))
""",
    "pond_of_project.py": """
from dataclasses import dataclass
from pathlib import Path
from bough.worlds.frozenlake import FrozenLake

@dataclass(frozen=True, slots=True, kw_only=True)
class Pond(FrozenLake):
    rules: str = ""

    @property
    def instructions(self):
        return Path(self.rules).read_text()
""",
    "shop_of_project/__init__.py": "",
    "shop_of_project/reward.py": """
from dataclasses import dataclass
from bough.reward import EnvReward

@dataclass(frozen=True, slots=True, kw_only=True)
class Paid(EnvReward):
    pass
""",
    "rules.txt": "Reach the goal.",
}


def test_a_project_of_several_files_goes_on_from_any_folder(bough: Bough, tmp_path: Path) -> None:
    home, away = tmp_path / "project", tmp_path / "away"
    away.mkdir()
    for name, text in PROJECT.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    bough("train", "recipe.py", *ONE_STEP, folder=home).fine()
    run = os.path.relpath(home / "runs" / "small", away)
    # A process of its own: one in which the project was imported has it, wherever its files are.
    assert command("eval", run, "workers=1", folder=away).wait().fine().startswith("step 2: success ")
    assert "resumed after step 2 of 3" in bough("resume", run, "steps=2", folder=away).fine()
    assert (
        "success"
        in bough("search", run, "BestOf(n=2)", "evaluation.tasks.count=1", "--out", "found", folder=away).fine()
    )
    exported = ("export", run, "--out", "values.jsonl", "--what", "values", "credit=Searched(head=value)", "filters=[]")
    bough(*exported, "--trees", "found/trees", folder=away).fine()
    assert (away / "values.jsonl").is_file()
    assert sorted(path.name for path in home.iterdir() if path.name != "__pycache__") == sorted(
        {name.split("/")[0] for name in PROJECT} | {"runs"}
    )


def test_the_process_stays_as_it_is(bough: Bough, tmp_path: Path) -> None:
    """Neither a folder nor a gradient mode that user code sets, nor its forks, change a run."""
    (tmp_path / "pieces.py").write_text(PIECES)
    (tmp_path / "elsewhere").mkdir()
    bough("train", "pieces.py:changing", *ONE_STEP, "health.dead_batches=9", folder=tmp_path).fine()
    assert (tmp_path / "runs" / "small" / "report.html").is_file()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_exit_of_the_process_is_an_error(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "pieces.py").write_text(PIECES)
    error = bough("train", "pieces.py:quits", folder=tmp_path).error(FAILED)
    assert "SystemExit: os._exit(0)" in error
    assert "in quits)" in error


def test_threads_that_stay_are_ended() -> None:
    code = (
        "import sys, threading, time; import bough.cli as cli; cli.THREADS_S = 0.1; "
        "sys.argv = ['bough', 'list', 'Grpo']; "
        "threading.Thread(target=time.sleep, args=(10_000,), name='stays').start(); cli.main()"
    )
    found = script(code).wait()
    assert "the command is done, and threads still run: 'stays'; they are ended" in found.err
    assert found.status == 0
