"""Copies of a run's checkpoints elsewhere: what they hold, and what happens when one fails."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.small import run as small

from bough.store import Checkpoints, Copies, RunDirectory, StoreError
from bough.train import Checkpointing, resume, start


def test_a_run_goes_on_from_its_copy_on_another_machine(tmp_path: Path) -> None:
    """The file system of fsspec in memory stands for an object store; the copy is brought back by its own commands."""
    url, store = "memory://bucket/runs", fsspec.filesystem("memory")
    warmup = replace(small().world.warmup, epochs=1)
    run = small().replace(steps=2, warmup=warmup, checkpointing=Checkpointing(every=1, keep=2, copy_to=url))
    first = start(run, tmp_path / "here", terminal=False)
    there = [path.removeprefix("/bucket/runs/small/") for path in store.find("/bucket/runs")]
    kept = [f"checkpoints/step_{step:06d}/manifest.json" for step in Checkpoints(directory=first.checkpoints).steps()]
    assert [path for path in there if path.startswith("checkpoints/") and path.endswith("manifest.json")] == kept
    assert {"config.json", "manifest.json", "metrics.jsonl", "report.html", "final/model.safetensors"} <= {*there}
    assert not [path for path in there if path.startswith(("trees/", "run.lock", "loggers/"))]
    store.get("/bucket/runs/small", str(tmp_path / "there" / "small"), recursive=True)
    second = tmp_path / "there" / "small"
    for directory in (first.path, second):
        resume(directory, ["steps=3"], terminal=False)
    one, other = (load_file(path / "final" / "model.safetensors") for path in (first.path, second))
    assert all(np.array_equal(one[name], other[name]) for name in one | other)


def written(path: Path, step: int) -> RunDirectory:
    """A run with a checkpoint of a step."""
    directory = RunDirectory(path=path)
    Checkpoints(directory=directory.checkpoints, keep=1).save(step, {}, {"step": step})
    (path / "config.json").write_text("{}")
    return directory


def test_older_checkpoints_go_once_the_newer_is_whole(tmp_path: Path) -> None:
    copies = Copies(f"file://{tmp_path}/store", tmp_path / "run")
    for step in (1, 2):
        written(tmp_path / "run", step)
        copies.start()
        assert copies.finish() == ""
    found = Checkpoints(directory=tmp_path / "store" / "run" / "checkpoints")
    assert (found.steps(), found.at(2).state()) == ([2], {"step": 2})


def test_a_copy_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies(f"file://{tmp_path}/store", tmp_path / "run")
    written(tmp_path / "run", 1)
    put: Any = copies._store.put_file

    def fails(source: str, target: str) -> None:
        if source.endswith("manifest.json"):
            raise OSError("the network is down")
        put(source, target)

    monkeypatch.setattr(copies._store, "put_file", fails)
    copies.start()
    assert "failed (OSError: the network is down); the run goes on" in copies.finish()
    there = Checkpoints(directory=tmp_path / "store" / "run" / "checkpoints")
    assert there.latest().checkpoint is None, "half a copy is no checkpoint"
    assert there.latest().skipped
    monkeypatch.undo()
    copies.start()
    assert (copies.finish(), copies.failures, there.steps()) == ("", 1, [1])
    assert there.latest().checkpoint is not None


def test_an_unknown_file_system_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    run = small()
    wrong = run.replace(checkpointing=replace(run.checkpointing, copy_to="tape://reel/1"))
    with pytest.raises(StoreError, match=r"checkpointing.copy_to: got 'tape://reel/1' .*need a URL of fsspec"):
        start(wrong, tmp_path, terminal=False)
    assert not [*tmp_path.iterdir()]
