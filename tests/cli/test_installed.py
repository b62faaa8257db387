"""Worlds and pieces of other installed packages are listed, found by name, checked and trained."""

import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bough.cli.app import app
from bough.cli.catalogue import _worlds
from bough.cli.exports import exports
from bough.config.installed import installed
from bough.store import RunDirectory, read_metrics

PACKAGE = Path(__file__).parents[2] / "examples" / "package"
SMALL = ("threads=1", "steps=1", "batch_tasks=2", "explorer.n=2", "warmup.epochs=1", "evaluation.tasks.count=2")


def run(*words: str) -> str:
    """The output of a command that ends with status 0."""
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def install(site: Path, name: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Writes the description of a distribution, as pip does."""
    folder = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [line for group, own in points.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in own.items()))]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    forget()


def forget() -> None:
    installed.cache_clear()
    exports.cache_clear()
    _worlds.cache_clear()


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages with the example in it."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    shutil.copytree(PACKAGE / "src", folder)
    install(folder, project["name"], project["entry-points"])
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "bough_countdown"]:
        del sys.modules[name]
    forget()


def test_a_package_is_listed_checked_and_trained() -> None:
    worlds = run("list", "worlds")
    assert "countdown " in worlds
    assert "Counting down by steps of up to 40" in worlds
    assert "\n    env=Countdown(highest=40, turns=3)\n" in run("list", "countdown")
    assert "scale: float = 1.0" in run("list", "MedianBaseline")
    assert "MedianBaseline" in run("list", "credit").split()
    assert "Countdown" in run("list", "env").split()
    run("check-env", "countdown", "--only=splits")
    run("check-env", "Countdown(turns=2)", "--only=splits")
    run("train", "grpo", "--on", "countdown", "credit=MedianBaseline(scale=2)", "name=small", *SMALL)
    directory = RunDirectory.open(Path("runs/small"))
    assert directory.read_config()["method"]["credit"]["piece"] == "bough_countdown.credit:MedianBaseline"
    assert [row["phase"] for row in read_metrics(directory.metrics)] == ["warmup", "rl"]
    run("eval", "runs/small", "evaluation.tasks.count=2")


def test_a_name_of_two_packages_and_an_object_that_cannot_be_imported_are_named(site: Path) -> None:
    points = {
        "bough.worlds": {"shop": "bough_countdown.world:countdown", "lost": "bough_gone.world:lost"},
        "bough.pieces": {"Grpo": "bough_countdown.credit:MedianBaseline", "Lost": "bough_countdown.credit:Lost"},
    }
    install(site, "other-worlds", points)
    need = "need a name of one package: uninstall a package, or rename its entry point"
    assert f"got shop, a name of Bough and of the package other-worlds (entry points bough.worlds); {need}" in refused(
        "train", "grpo", "--on", "shop"
    )
    assert "credit: got Grpo, a name of Bough and of the package other-worlds" in refused(
        "train", "grpo", "credit=Grpo"
    )
    assert (
        "lost of the package other-worlds (entry point bough.worlds) cannot be imported: ModuleNotFoundError"
        in refused("train", "grpo", "--on", "lost")
    )
    assert "credit: Lost of the package other-worlds (entry point bough.pieces) cannot be imported" in refused(
        "train", "grpo", "credit=Lost"
    )
    assert "lost of the package other-worlds (entry point bough.worlds) cannot be imported" in run("list", "worlds")
    run("list", "Gae")
    install(site, "third", {"bough.worlds": {"countdown": "bough_countdown.world:countdown"}})
    assert "a name of the package bough-countdown and of the package third" in refused("check-env", "countdown")


def test_objects_that_are_none_of_their_group_are_named(site: Path) -> None:
    (site / "ends.py").write_text("raise SystemExit(0)\n")
    points = {
        "bough.worlds": {"module": "bough_countdown", "ends": "ends:world", "frozenlake": "bough_countdown.world:none"},
        "bough.pieces": {
            "Module": "bough_countdown",
            "Ends": "ends",
            "Median": "bough_countdown.credit:MedianBaseline",
        },
    }
    install(site, "other-worlds", points)
    assert "module of the package other-worlds (entry point bough.worlds) is <module 'bough_countdown'" in refused(
        "train", "grpo", "--on", "module"
    )
    assert "Ends of the package other-worlds (entry point bough.pieces) cannot be imported: SystemExit: 0" in refused(
        "train", "grpo", "--on", "shop", "credit=Ends"
    )
    assert "Module of the package other-worlds (entry point bough.pieces) is <module" in refused(
        "train", "grpo", "--on", "shop", "credit=Module"
    )
    worlds = run("list", "worlds")
    assert "need a function that returns a World" in worlds
    assert "ends of the package other-worlds (entry point bough.worlds) cannot be imported: SystemExit" in worlds
    assert run("list", "Median").startswith("Median (credit)")
    assert "countdown" in _worlds()
