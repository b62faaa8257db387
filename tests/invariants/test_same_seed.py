"""Invariant 10: the same seed gives the same run, bit for bit; so does another order of arrival."""

from dataclasses import replace
from pathlib import Path

from safetensors.numpy import load_file
from tests.small import MEASURED
from tests.small import run as small

from bough.engine import Local
from bough.store import RunDirectory, read_metrics
from bough.train import Run, start


def tensors(file: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(file).items()}


def weights(directory: RunDirectory) -> dict[str, bytes]:
    return tensors(directory.final / "model.safetensors")


def rows(directory: RunDirectory) -> list[str]:
    found = read_metrics(directory.metrics)
    return [str({name: value for name, value in row.items() if not name.startswith(MEASURED)}) for row in found]


def twice(run: Run, folder: Path) -> RunDirectory:
    one, other = (start(run.replace(name=name), folder, terminal=False) for name in ("one", "other"))
    assert rows(one) == rows(other)
    assert weights(one) == weights(other)
    assert any(float(row.get("policy/canary_gap", 0)) > 0 for row in read_metrics(one.metrics)), "it has learned"
    for file in sorted(one.trees.glob("*.safetensors")):
        twin = other.trees / file.name
        assert tensors(file) == tensors(twin)
        assert file.with_suffix(".jsonl").read_bytes() == twin.with_suffix(".jsonl").read_bytes()
    return one


def test_the_same_seed(tmp_path: Path) -> None:
    one = twice(small(), tmp_path)
    another = start(small().replace(name="another", seed=1), tmp_path, terminal=False)
    assert weights(one) != weights(another)
    assert rows(one) != rows(another)


def test_another_order_of_arrival(tmp_path: Path) -> None:
    """Worker processes answer when they will; each request is computed alone."""
    run = small()
    warmup = replace(run.world.warmup, epochs=8)
    twice(run.replace(engine=Local(slots=32, deterministic=True), workers=2, warmup=warmup, steps=3), tmp_path)
