"""The recipes for clusters: their syntax, and the runs that their commands make."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from tests.docs.pages import ROOT

from bough.cli.app import app
from bough.cli.cluster import execution_changes
from bough.cli.find import find_run
from bough.config import override
from bough.train import Run
from bough.train.check import check

FOLDER = ROOT / "examples" / "cluster"
SCRIPTS = sorted(path for path in FOLDER.iterdir() if path.suffix in (".sh", ".sbatch"))
EXECUTED = {"slurm": 1, "rayjob": 2, "ray_submit": 2, "eight_gpus": 4, "one_gpu": 1}
"""The recipes, and the ranks of their runs; torchrun sets those of Slurm."""


def commands(text: str) -> list[list[str]]:
    """The words of each `bough train` and `bough resume`."""
    lines = text.replace("\\\n", " ").splitlines()
    found = [re.search(r"\bbough (?:train|resume) .*", line) for line in lines if not line.lstrip().startswith("#")]
    return [shlex.split(each[0].rstrip('"'))[1:] for each in found if each]


def made(words: list[str]) -> Run:
    """The run of a `bough train`."""
    given = typer.main.get_command(app).commands["train"].make_context("train", words[1:]).params  # type: ignore[attr-defined]
    run = find_run(given["method"], given["on"], given["policy"])
    run = override(run, [*execution_changes(given["cluster"]), *(given["changes"] or [])])
    check(run)
    return run


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_shell_reads_it(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize("name", EXECUTED)
def test_its_command_makes_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (path,) = (each for each in FOLDER.glob(f"{name}.*") if each.suffix != ".toml")
    train = [made(words) for words in commands(path.read_text()) if words[0] == "train"]
    assert [run.world.execution.ranks for run in train] == [EXECUTED[name]]
    assert "\n# Not run" in path.read_text()
    assert "Checked: " in path.read_text()


def test_the_page_has_each_recipe() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    for path in FOLDER.iterdir():
        assert f"examples/cluster/{path.name}" in page, path.name


def test_the_job_of_kuberay_has_its_fields() -> None:
    job: dict[str, Any] = yaml.safe_load((FOLDER / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert all(isinstance(value, str) for group in groups for value in group["rayStartParams"].values())
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert {each["name"] for each in container["env"]} >= {"RAY_AUTH_MODE", "BOUGH_PORTS"}
    (metrics,) = (each for each in groups[0]["template"]["spec"]["containers"][0]["ports"] if each["name"] == "metrics")
    assert f"metrics_port={metrics['containerPort']}" in job["spec"]["entrypoint"]
