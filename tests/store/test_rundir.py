import json
import platform
from pathlib import Path

import pytest
import torch

from bough.store import Checkpoints, RunDirectory, StoreError, check_output, describe
from bough.train import read_heldout


def test_a_new_run_is_made_and_found_again(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "runs" / "one")
    run.write_config({"name": "one", "steps": 3})
    assert RunDirectory.open(tmp_path / "runs" / "one") == run
    assert run.read_config() == {"name": "one", "steps": 3}
    assert run.trees_of(12) == run.path / "trees" / "step_000012.safetensors"
    assert all(folder.is_dir() for folder in (run.trees, run.checkpoints, run.policy))
    assert not run.final.exists()


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert RunDirectory.create(tmp_path).path == tmp_path


def test_a_folder_with_a_run_is_refused_with_its_step(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "one")
    run.write_config({})
    with pytest.raises(StoreError, match="holds a run without a checkpoint; choose another name="):
        RunDirectory.create(run.path)
    Checkpoints(directory=run.checkpoints).save(40, {"policy": {"w": torch.zeros(2)}}, {})
    with pytest.raises(StoreError, match=f"exists and holds a run at step 40; .*`bough resume {run.path}`"):
        RunDirectory.create(run.path)


def test_anything_else_that_is_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(StoreError, match="exists and holds something else than a run"):
            RunDirectory.create(place)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_is_no_run_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="got no run directory"):
        RunDirectory.open(tmp_path)
    with pytest.raises(StoreError, match="got a folder that does not exist"):
        RunDirectory.open(tmp_path / "none")


def test_a_broken_config_is_named(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "one")
    run.config.write_text('{"name": ')
    with pytest.raises(StoreError, match=r"config\.json: got no JSON"):
        run.read_config()
    run.config.write_text("[]")
    with pytest.raises(StoreError, match=r"config\.json: got a JSON list, not an object"):
        run.read_config()


def test_the_manifest_says_what_a_run_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory.create(tmp_path / "one")
    run.write_config({})
    monkeypatch.chdir(tmp_path)
    run.write_manifest({**describe(), "data": {"train": "abc"}})
    manifest = json.loads(run.manifest.read_text())
    assert manifest["python"] == platform.python_version()
    assert manifest["packages"]["torch"] == torch.__version__
    assert manifest["data"] == {"train": "abc"}
    assert manifest["git"] is None
    assert manifest["processor"]


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 50_000, "{}", '{"step": 1}', '{"step": 1, "tasks": {"a": 1}}', '{"step": 1, "tasks": []}']
)
def test_a_damaged_heldout_result_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "heldout").mkdir()
    (tmp_path / "heldout" / "step_000001.json").write_text(text)
    with pytest.raises(StoreError, match=r"heldout/step_000001\.json: got .*need the file as the run wrote it"):
        read_heldout(RunDirectory(path=tmp_path))


@pytest.mark.parametrize(
    "name", ["config.json", "trees/step_000003.safetensors", "final/model.safetensors", "final-critic/x", "run.lock"]
)
def test_a_runs_own_file_is_no_place_for_an_output(tmp_path: Path, name: str) -> None:
    run = RunDirectory.create(tmp_path / "a")
    run.write_config({})
    run.write_manifest({})
    with pytest.raises(StoreError, match=r"got a place of the run .* itself"):
        check_output(run.path / name)
    check_output(run.path / "pairs.jsonl")
    check_output(tmp_path / name)


def test_long_lists_are_kept_beside_the_configuration(tmp_path: Path) -> None:
    rows = [f'{{"prompt": "é {number}"}}' for number in range(30_000)]
    config = {"world": {"env": {"rows": rows, "names": ["a"]}, "again": [rows, [1, 2]]}, "steps": 3}
    run = RunDirectory.create(tmp_path / "run")
    run.write_config(config)
    run.write_manifest({})
    assert run.config.stat().st_size < 1000
    assert len([*run.data.iterdir()]) == 1, "equal lists are one file"
    assert run.read_config() == config
    run.write_config({**config, "steps": 4})
    assert run.read_config()["steps"] == 4
    (file,) = run.data.iterdir()
    file.write_text(file.read_text().replace("é 7", "é 8"))
    with pytest.raises(StoreError, match=r"data/\w+\.json: got a file that changed; need it as the run wrote it"):
        run.read_config()
    file.unlink()
    with pytest.raises(StoreError, match="got no file"):
        run.read_config()
