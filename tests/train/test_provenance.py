"""A run remembers what it was made of: `resume`, `evaluate` and `search` refuse what changed, by name."""

import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.small import run as small

from bough.config import ConfigError
from bough.config.override import override
from bough.evaluate import evaluate, search
from bough.store import RunDirectory, write_tasks
from bough.train import Evaluation, Tasks, Warmup, resume, start
from bough.train.provenance import Provenance, run_files
from bough.train.start import load_run
from bough.worlds.frozenlake import FrozenLake

CREDIT = """
from collections.abc import Sequence
from dataclasses import dataclass

from bough.credit import Grpo
from bough.tree import Credited, Rewarded
from provenance_factor import FACTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return Grpo()(rewarded)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a finished run of two steps that names files of all kinds."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "provenance_credit.py").write_text(CREDIT)
    (folder / "provenance_factor.py").write_text("FACTOR = 1\n")
    env = FrozenLake(size=3, max_steps=6)
    write_tasks(folder / "tasks.jsonl", env.tasks("train", 12, 0))
    run = small().replace(
        tasks=Tasks(split="train", count=12, file=str(folder / "tasks.jsonl")),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=9),
        warmup=Warmup(),
        steps=1,
    )
    start(override(run, [f"credit={folder}/provenance_credit.py:Mine"]), folder, terminal=False)
    yield folder
    for name in [name for name in sys.modules if "provenance_" in name]:
        del sys.modules[name]
    sys.path.remove(str(folder))


@pytest.fixture
def folder(made: Path) -> Iterator[Path]:
    """The same folder; it is as before afterwards."""
    kept = made.with_name("kept")
    shutil.copytree(made, kept)
    yield made
    shutil.rmtree(made)
    kept.rename(made)


def _tasks(folder: Path) -> None:
    write_tasks(folder / "tasks.jsonl", FrozenLake(size=3, max_steps=6).tasks("train", 12, 1))


def _manifest(folder: Path, change: Callable[[dict[str, dict[str, str]]], object]) -> None:
    path = folder / "small" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


CHANGES = {
    "provenance_credit.py": lambda folder: (folder / "provenance_credit.py").write_text(CREDIT + "\n"),
    "provenance_factor.py": lambda folder: (folder / "provenance_factor.py").write_text("FACTOR = 2\n"),
    "tasks.jsonl": _tasks,
    "the held-out tasks": lambda folder: _manifest(folder, lambda found: found["data"].update(heldout="0")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_refused_by_name(name: str, folder: Path) -> None:
    run = folder / "small"
    CHANGES[name](folder)
    need = rf"was made of something else:\n  .*{name}: got .*; need .*\nRestore it, .*--accept-changes"
    for attempt in (lambda: resume(run, ["steps=2"], terminal=False), lambda: evaluate(run), lambda: search(run)):
        with pytest.raises(ConfigError, match=need):
            attempt()


def test_an_accepted_change_is_recorded_and_known_from_then_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder / "small"
    _tasks(folder)
    before = (run / "manifest.json").read_bytes()
    assert "tasks.jsonl: got" in evaluate(run, accept_changes=True).accepted[0]
    assert (run / "manifest.json").read_bytes() == before, "an evaluation changes nothing"
    assert "accepted a change of" in capsys.readouterr().err
    resume(run, ["steps=2"], accept_changes=True, terminal=False)
    (entry,) = json.loads((run / "manifest.json").read_text())["changes"]
    (file, tasks) = entry["accepted"]
    assert "tasks.jsonl: got" in file
    assert tasks.startswith("the training tasks: got")
    assert "accepted a change of" in capsys.readouterr().out
    resume(run, ["steps=3"], terminal=False)
    assert len(json.loads((run / "manifest.json").read_text())["changes"]) == 1


def test_other_versions_are_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = folder / "small"
    _manifest(folder, lambda found: found["packages"].update(torch="0.1"))
    resume(run, ["steps=2"], terminal=False)
    assert "other versions than the run was made with: torch 0.1 ->" in capsys.readouterr().out
    assert json.loads((run / "manifest.json").read_text())["changes"][0]["versions"][0].startswith("torch 0.1 -> ")


def test_each_new_place_is_recorded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(path=folder / "small")
    made = Provenance(directory=directory, run=load_run(directory), accept=False)
    (first,) = directory.read_manifest()["places"]
    assert (first["host"], first["cluster"], first["ranks"]) == (platform.node(), None, [])
    made.record()
    assert directory.read_manifest()["places"] == [first], "it goes on in the same place"
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    for _ in range(2):
        made.record(["elsewhere", "another"])
    _, second = directory.read_manifest()["places"]
    assert (second["host"], second["ranks"]) == ("elsewhere", ["elsewhere", "another"])


def test_changed_settings_make_other_tasks(folder: Path) -> None:
    """Tasks are compared where their settings are those of the run."""
    _manifest(folder, lambda found: found["data"].update(heldout="0"))
    assert not evaluate(folder / "small", changes=["evaluation.tasks.count=1"]).accepted


def test_files_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts of commands with their imports, functions of files, folders; not texts that only look like names."""
    monkeypatch.chdir(tmp_path)
    for name in ("agent.py", "beside_agent.py", "desk.py", "rows.jsonl", "test/x", "corpus/a.txt", "small/x"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("import beside_agent\n" if name == "agent.py" else "")
    changes = [
        "explorer=Program(agent='python agent.py --fast')",
        "models={judge: FrozenModel(policy=Pretrained(path=corpus))}",
        f"env=Gymnasium(make={tmp_path}/desk.py:Desk.room)",
    ]
    run = override(small(), ["warmup.file=rows.jsonl", *changes])
    assert set(run_files(run)) == {
        str(tmp_path / "agent.py"),
        str(tmp_path / "beside_agent.py"),
        str(tmp_path / "desk.py"),
        "rows.jsonl",
        "corpus",
    }
