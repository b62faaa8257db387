"""Disks that are full and files that are cut off: a message, and everything that was there before is there still."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from tests.talk import ONE_STEP, SMALL, Bough

from bough.store import Checkpoints

FAILED = 1
LONG = ("steps=12", "warmup.epochs=10", "evaluation.tasks.count=2", "evaluation.every=100", "health.dead_batches=99")


class Disk:
    """A small file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def resize(self, kib: int) -> None:
        options = f"size={kib}k" + (",remount" if os.path.ismount(self.path) else "")
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)], check=True)

    def close(self) -> None:
        if os.path.ismount(self.path):
            subprocess.run(["umount", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "disk")
    try:
        made.resize(64)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system can be mounted by root alone; the test of the largest file covers the messages")
    yield made
    made.close()


def test_a_full_disk(bough: Bough, disk: Disk, tmp_path: Path) -> None:
    disk.resize(1300)
    error = bough("train", f"{SMALL}:run", *LONG, "checkpointing.keep=50", "--out", disk.path, folder=tmp_path).error(
        FAILED
    )
    run = disk.path / "small"
    assert re.search(r"error: disk full while writing \S+: [\d,]+ bytes needed, [\d,]+ bytes free there\. Free", error)
    assert f"`bough resume {run}`" in error
    latest = Checkpoints(directory=run / "checkpoints").latest()
    assert latest.checkpoint is not None
    assert latest.skipped == ()
    assert 10 <= latest.checkpoint.step < 22
    rows = (run / "metrics.jsonl").read_text().splitlines()
    disk.resize(20000)
    epochs = 10
    at = latest.checkpoint.step
    told = f"step {at} of {epochs + 12}" + (" (warm-up)" if at <= epochs else "")
    assert f"resumed after {told}\n" in bough("resume", run, folder=tmp_path).fine()
    whole = bough("train", f"{SMALL}:run", *LONG, "name=whole", folder=tmp_path)
    assert whole.status == 0
    one, other = (load_file(path / "final" / "model.safetensors") for path in (run, tmp_path / "runs" / "whole"))
    assert all((one[name] == other[name]).all() for name in other)
    assert len((run / "metrics.jsonl").read_text().splitlines()) > len(rows)


@pytest.mark.parametrize(
    ("kib", "file"),
    [(12, "policy"), (48, "checkpoints/step_000001"), (160, "trees/"), (330, "final"), (600, "report.html")],
)
def test_a_disk_that_is_full_sooner_or_later(bough: Bough, disk: Disk, tmp_path: Path, kib: int, file: str) -> None:
    disk.resize(kib)
    error = bough("train", f"{SMALL}:run", *ONE_STEP, "--out", disk.path, folder=tmp_path).error(FAILED)
    assert f"disk full while writing {disk.path}/small/{file}" in error
    disk.resize(4000)
    again = "resume" if (disk.path / "small").exists() else "train"
    arguments = (disk.path / "small",) if again == "resume" else (f"{SMALL}:run", *ONE_STEP, "--out", disk.path)
    bough(again, *arguments, folder=tmp_path).fine()
    assert (disk.path / "small" / "final" / "model.safetensors").is_file()


@pytest.mark.parametrize("largest_file", [2_000, 20_000, 90_000])
def test_files_that_may_not_grow(bough: Bough, tmp_path: Path, largest_file: int) -> None:
    ask = ("train", f"{SMALL}:run", *ONE_STEP)
    error = bough(*ask, folder=tmp_path, largest_file=largest_file).error(FAILED)
    assert "disk full while writing" in error
    run = tmp_path / "runs" / "small"
    bough(*(("resume", run) if run.exists() else ask), folder=tmp_path).fine()


def test_a_checkpoint_that_is_cut_off(bough: Bough, tmp_path: Path) -> None:
    bough("train", f"{SMALL}:run", "steps=2", "warmup.epochs=2", "evaluation.tasks.count=2", folder=tmp_path).fine()
    run = tmp_path / "runs" / "small"
    final = (run / "final" / "model.safetensors").read_bytes()
    newest = run / "checkpoints" / "step_000004" / "policy.safetensors"
    newest.write_bytes(newest.read_bytes()[:5000])
    out = bough("resume", run, folder=tmp_path).fine()
    assert re.search(
        r"skipped the damaged checkpoint step_000004: policy.safetensors has 5,000 bytes; need [\d,]+", out
    )
    assert "resumed after step 3 of 4" in out
    assert (run / "final" / "model.safetensors").read_bytes() == final
    assert Checkpoints(directory=run / "checkpoints").latest().skipped == ()


def test_a_run_whose_config_was_changed(bough: Bough, tmp_path: Path) -> None:
    bough("train", f"{SMALL}:run", *ONE_STEP, folder=tmp_path).fine()
    config = tmp_path / "runs" / "small" / "config.json"
    good = config.read_text()
    config.write_text(good.replace('"steps": 1', '"steps": 2').replace('"frozen": 0.8', '"frozen": 0.7'))
    for command in ("resume", "eval"):
        error = bough(command, "runs/small", folder=tmp_path).error(FAILED)
        assert "config.json: got a file whose world changed after the run wrote it; need it as written" in error
    manifest = config.with_name("manifest.json")
    described = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(described) | {"config": []}))
    config.write_text(good.replace('"steps"', '"stepz"'))
    error = bough("resume", "runs/small", folder=tmp_path).error(2)
    assert "world.schedule.stepz: unknown name 'stepz'; did you mean 'steps'? in Schedule" in error
    for moved in ("bough.credit.grpa:Grpo", "bough.credit.grpo:Grpa"):
        config.write_text(good.replace("bough.credit.grpo:Grpo", moved))
        error = bough("resume", "runs/small", folder=tmp_path).error(2)
        assert f"credit: got piece '{moved}'" in error
        assert "of another version of Bough: continue the run with that version" in error
    config.write_text(good[: len(good) // 2])
    assert "config.json: got no JSON" in bough("eval", "runs/small", folder=tmp_path).error(FAILED)
    manifest.write_text(described)
    config.write_text(json.dumps(json.loads(good)))
    bough("resume", "runs/small", folder=tmp_path).fine()
