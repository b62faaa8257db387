"""What `bough train` begins with: a method, a file of settings, or a run; shown, shrunk, and made again exactly."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.talk import ONE_STEP, SMALL, Bough
from typer.testing import CliRunner

from bough.cli.app import app
from bough.cli.chosen_run import choose
from bough.cli.find import find_run, names
from bough.config import dump
from bough.config.read_toml import from_toml
from bough.store import RunDirectory
from bough.train import Run
from bough.train.check import check
from bough.train.quick import MOST, quick

CREDIT = """
from dataclasses import dataclass
from bough.credit import Grpo

@dataclass(frozen=True, kw_only=True)
class Mine:
    words: str = "none"
    inner: Grpo = Grpo()

    def __call__(self, rewarded):
        return self.inner(rewarded)
"""


def ran(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 2, result.output
    return result.stderr


def stored(folder: Path, run: Run) -> RunDirectory:
    """A run that has its settings and no step."""
    directory = RunDirectory.create(folder / run.name)
    (directory.policy / "config.json").write_text("{}")
    directory.write_config(dump(run))
    return directory


def test_a_run_is_trained_shown_and_made_again(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CREDIT)
    awkward = (
        "credit=mine.py:Mine(words='a, (b)',inner=Grpo(std=none))",
        "rewards=[EnvReward,InvalidAction(penalty=.1)]",
    )
    bough("train", f"{SMALL}:run", *ONE_STEP, *awkward, "name=a", folder=tmp_path).fine()
    first = tmp_path / "runs" / "a"
    (tmp_path / "run.toml").write_text(bough("show", "runs/a", folder=tmp_path).fine())
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    bough("train", "--config", "run.toml", "--out", "others", folder=tmp_path).fine()
    configs = [json.loads((folder / "config.json").read_text()) for folder in (first, tmp_path / "others" / "a")]
    assert configs[0] == configs[1]
    # A run of the settings of a run, from another folder: relative paths are those of the first run.
    out = bough("train", first, "seed=1", "--out", tmp_path / "runs", folder=Path("/")).fine()
    assert out.endswith(f"report: {tmp_path}/runs/a_2/report.html\n")
    again = json.loads((tmp_path / "runs" / "a_2" / "config.json").read_text())
    assert again == {**configs[0], "seed": 1, "name": "a_2"}
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == before


def test_settings_are_shown_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ran("train", "dapo(high=0.3)", "--on", "sokoban", "--show", "--like", "trl", "steps=7")
    run = from_toml(tomllib.loads(shown), Run)
    assert run.name == "dapo_sokoban"
    assert run.world.schedule.steps == 7
    assert not list(tmp_path.iterdir())
    (tmp_path / "run.toml").write_text(shown)
    assert ran("train", "--config", "run.toml", "--show") == shown
    assert 'name = "b"' in ran("train", "--config", "run.toml", "--show", "name=b")
    assert ran("train", "name=c", "--config", "run.toml", "--show").startswith('name = "c"\n')


def test_a_run_that_does_not_fit_is_not_shown() -> None:
    assert "error: " in refused("train", "grpo", "--show", "models.judge=OpenAi(model=m,base_url='http://x/v1')")


def test_the_default_world_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["train", "grpo", "--show"])
    assert said.stderr == "on frozenlake, the default; --on WORLD takes another\n"
    for words in (("grpo", "--on", "sokoban"), ("grpo_frozenlake",)):
        assert CliRunner().invoke(app, ["train", *words, "--show"]).stderr == ""
    assert "Settings on frozenlake (--on takes another):" in ran("list", "grpo")


def test_a_file_changes_a_method_and_changes_come_last(tmp_path: Path) -> None:
    file = tmp_path / "part.toml"
    file.write_text('steps = 9\ncredit = "Grpo(std=none)"\n[optimizer]\nlearning_rate = 0.5\n')
    shown = ran("train", "grpo", "--on", "sokoban", "--config", file, "--show", "steps=8")
    run = from_toml(tomllib.loads(shown), Run)
    assert (run.world.schedule.steps, run.world.optimizer.learning_rate, run.name) == (8, 0.5, "grpo_sokoban")


def test_mistakes_of_what_to_train(tmp_path: Path) -> None:
    assert "got no METHOD; need a method (`bough list methods`), a run directory, or --config" in refused(
        "train", "a=1"
    )
    file = tmp_path / "run.toml"
    file.write_text("steps = 3\n")
    assert "world: got World without name, env, policy; need World(" in refused("train", "--config", file)
    directory = stored(tmp_path, find_run("grpo_frozenlake"))
    for words in ((directory.path,), ("--config", file)):
        assert "has a world of its own; need a method, or no --on" in refused("train", *words, "--on", "sokoban")


def test_a_run_gets_a_free_name(tmp_path: Path) -> None:
    directory = stored(tmp_path, find_run("grpo_frozenlake"))
    options = {"on": None, "policy": None, "config": None, "library": None, "quick": False}

    def name(*changes: str, **more: object) -> str:
        return choose(str(directory.path), changes, **{**options, "out": tmp_path, **more}).run().name

    assert name() == "grpo_frozenlake_2"
    (tmp_path / "grpo_frozenlake_2").mkdir()
    assert name() == "grpo_frozenlake_3"
    assert name("name=mine") == "mine"
    assert name(out=tmp_path / "elsewhere") == "grpo_frozenlake"
    assert name(quick=True) == "grpo_frozenlake_quick"


@pytest.mark.parametrize("method", [*names("methods")][::6])
def test_a_quick_run_is_small_and_fits(method: str) -> None:
    whole = find_run(method)
    run = quick(whole)
    check(run)
    assert run.world.schedule.steps == run.world.schedule.batch_tasks == MOST["steps"]
    assert run.world.evaluation.tasks.count == MOST["evaluation.tasks.count"]
    assert all(part.demonstrations <= 6 for part in run.world.warmup.parts().values())
    assert run.method.credit == whole.method.credit
    assert quick(run) == run, "what is small stays"


def test_changes_are_made_of_the_quick_run() -> None:
    run = from_toml(tomllib.loads(ran("train", "grpo", "--quick", "--show", "steps=5", "name=q")), Run)
    assert (run.world.schedule.steps, run.world.schedule.batch_tasks, run.name) == (5, 2, "q")
