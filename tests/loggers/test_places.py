"""Weights & Biases without a network, MLflow, TensorBoard and trackio: equal values, and one run after a kill."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.loggers.test_run_loggers import logged, numbers, two_steps
from tests.missing import need

from bough.loggers import Logger, Mlflow, TensorBoard, Trackio, Wandb, run_loggers
from bough.loggers.wandb import stored_records
from bough.store import RunDirectory
from bough.train import resume, start

Series = Mapping[str, Mapping[int, float]]
"""By metric, its values by step."""


def of_rows(directory: RunDirectory) -> Series:
    return series((int(row["step"]), name, row[name]) for row in numbers(directory) for name in row if name != "step")


def of_wandb(directory: RunDirectory) -> Series:
    import json

    found = []
    for file in sorted((directory.loggers / "Wandb").glob("wandb/offline-run-*/*.wandb")):
        for record in stored_records(file):
            if record.WhichOneof("record_type") == "history":
                items = {
                    "/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item
                }
                found += [(int(items["_step"]), name, items[name]) for name in items if not name.startswith("_")]
    return series(found)


def of_tensorboard(directory: RunDirectory) -> Series:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = EventAccumulator(str(directory.loggers / "TensorBoard"))
    seen.Reload()
    return series((each.step, tag, each.value) for tag in seen.Tags()["scalars"] for each in seen.Scalars(tag))


def of_mlflow(uri: str) -> Series:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("bough")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["world.schedule.batch_tasks"] == "3"
    return series(
        (each.step, name, each.value)
        for name in run.data.metrics
        for each in client.get_metric_history(run.info.run_id, name)
    )


def of_trackio(directory: RunDirectory) -> Series:
    import json

    from trackio.sqlite_storage import SQLiteStorage

    (record,) = (
        each for each in json.loads(directory.logger_records.read_text())["loggers"] if each["name"] == "Trackio"
    )
    rows = SQLiteStorage.get_logs("bough", record["id"])
    return series(
        (row["step"], name, float(row[name])) for row in rows for name in row if name not in ("step", "timestamp")
    )


def series(values: object) -> Series:
    found = dict[str, dict[int, float]]()
    for step, name, value in values:  # type: ignore[attr-defined]
        assert step not in found.setdefault(name, {}), f"{name} has two values at step {step}"
        found[name][step] = float(value)
    return found


def same(one: Series, other: Series, kind: type = float) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].keys() == other[name].keys(), name
        for step in one[name]:
            np.testing.assert_equal(kind(one[name][step]), kind(other[name][step]), err_msg=name)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'mlruns'}"


@pytest.fixture(autouse=True)
def _files_of_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def test_a_run_with_three_loggers_has_equal_values_in_all(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("wandb", "mlflow")
    monkeypatch.setattr(run_loggers, "FLUSH_S", 600)
    run = two_steps(TensorBoard(), Wandb(mode="offline"), Mlflow(tracking_uri=uri))
    directory = start(run, tmp_path, terminal=False)
    rows = of_rows(directory)
    same(rows, of_wandb(directory))
    same(rows, of_mlflow(uri))
    same(rows, of_tensorboard(directory), np.float32)
    directory = resume(directory.path, ["steps=3"], terminal=False)
    longer = of_rows(directory)
    assert max(longer["train/success"]) == max(rows["train/success"]) + 1
    same(longer, of_wandb(directory))
    same(longer, of_mlflow(uri))
    same(longer, of_tensorboard(directory), np.float32)


ROWS = [{"step": step, "train/success": step / 3, "loss[a]": math.nan, "b": 1e30} for step in range(1, 5)]


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow", "trackio"])
def test_a_resumed_run_goes_on_at_each_place(
    name: str, tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process before had written steps after the checkpoint, 2; what it logged last may not be stored."""
    if name != "tensorboard":
        need(name)
    directory = RunDirectory.create(tmp_path / "a")
    if name == "trackio":
        monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path)
    logger: Logger = {
        "tensorboard": TensorBoard(),
        "wandb": Wandb(mode="offline"),
        "mlflow": Mlflow(tracking_uri=uri),
        "trackio": Trackio(),
    }[name]
    logged(directory, (logger,), ROWS[:3], -1)
    logged(directory, (logger,), ROWS[2:], 2)
    rows = of_rows(directory)
    if name == "mlflow":
        same({key.replace("[", "_").replace("]", "_"): rows[key] for key in rows}, of_mlflow(uri))
    elif name == "tensorboard":
        same(rows, of_tensorboard(directory), np.float32)
    else:
        same(rows, of_wandb(directory) if name == "wandb" else of_trackio(directory))


def test_weights_and_biases_without_a_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("wandb")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(ValueError, match="got mode='online' and no API key; need one: do `wandb login`"):
        Wandb().check_packages()


def test_rows_that_weights_and_biases_had_not_stored_are_written_again(tmp_path: Path) -> None:
    """Its process keeps rows in memory; a kill loses them, while loggers.json has the step."""
    need("wandb")
    directory, logger = RunDirectory.create(tmp_path / "a"), Wandb(mode="offline")
    logged(directory, (logger,), ROWS[:3], -1)
    (file,) = (directory.loggers / "Wandb").glob("wandb/offline-run-*/*.wandb")
    file.write_bytes(file.read_bytes()[:7])
    logged(directory, (logger,), ROWS[3:], 3)
    same(of_rows(directory), of_wandb(directory))
