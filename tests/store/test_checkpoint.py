import multiprocessing
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.store import Checkpoints, Metrics, StoreError, write_json

STATE = {"rng": [1, 2**70], "phase": "rl", "best": 0.5}


def groups(step: int, size: int = 8) -> dict[str, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(step)
    return {
        "policy": {"weight": torch.randn(size, 4, generator=generator), "scale": torch.tensor(float(step))},
        "optimizer": {"0.exp_avg": torch.randn(size, generator=generator), "0.step": torch.tensor(step)},
    }


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_everything_comes_back_bit_for_bit(tmp_path: Path) -> None:
    tied = torch.randn(3, 3, dtype=torch.float64)
    wrote = {
        "policy": {"a": tied, "b": tied, "c": tied.T, "half": torch.randn(5).bfloat16(), "none": torch.empty(0, 4)},
        "optimizer": {"step": torch.tensor(7), "nan": torch.tensor([float("nan"), -0.0])},
    }
    path = Checkpoints(directory=tmp_path).save(7, wrote, STATE)
    found = Checkpoints(directory=tmp_path).latest()
    assert found.skipped == ()
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.checkpoint.path) == (7, path)
    assert found.checkpoint.state() == STATE
    for group, tensors in wrote.items():
        back = found.checkpoint.tensors(group)
        assert back.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert back[name].dtype == tensor.dtype
            assert back[name].shape == tensor.shape
            as_bytes = [each.contiguous().view(torch.uint8) if each.ndim else each for each in (back[name], tensor)]
            assert torch.equal(*as_bytes)


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    checkpoints = Checkpoints(directory=tmp_path)
    checkpoints.save(1, groups(1), STATE)
    with pytest.raises(StoreError, match=r"no group 'critic'.*\['optimizer', 'policy'\]"):
        checkpoints.at(1).tensors("critic")
    with pytest.raises(ValueError, match=r"groups named \['../up'\]"):
        checkpoints.save(2, {"../up": {}}, STATE)


def test_the_newest_and_the_pinned_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(directory=tmp_path, keep=2)
    for step in range(10, 60, 10):
        checkpoints.save(step, groups(step), STATE, pinned=(20,) if step > 10 else ())
    assert names(tmp_path) == ["step_000020", "step_000040", "step_000050"]
    assert checkpoints.steps() == [20, 40, 50]
    assert checkpoints.at(20).step == 20
    with pytest.raises(StoreError, match=r"no checkpoint of step 30.*\[20, 40, 50\]"):
        checkpoints.at(30)


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    found = Checkpoints(directory=tmp_path / "none").latest()
    assert (found.checkpoint, found.skipped) == (None, ())


def test_saving_a_step_again_replaces_it_and_drops_the_future(tmp_path: Path) -> None:
    checkpoints = Checkpoints(directory=tmp_path, keep=1)
    for step in (10, 20):
        checkpoints.save(step, groups(step), STATE)
    checkpoints.save(20, groups(20), {"again": True})
    assert checkpoints.at(20).state() == {"again": True}
    checkpoints.save(15, groups(15), STATE)
    assert names(tmp_path) == ["step_000015"]


def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path) -> None:
    checkpoints = Checkpoints(directory=tmp_path)
    checkpoints.save(10, groups(10), STATE)
    (tmp_path / "step_000010").rename(tmp_path / "step_000010.old")
    (tmp_path / "step_000010.tmp-1").mkdir()
    found = checkpoints.latest().checkpoint
    assert found is not None
    assert found.step == 10
    checkpoints.save(10, groups(10), {"again": True})
    assert names(tmp_path) == ["step_000010"]
    assert checkpoints.at(10).state() == {"again": True}


@pytest.fixture(scope="module")
def two_saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("two")
    for step in (10, 20):
        Checkpoints(directory=directory).save(step, groups(step), STATE)
    return directory


FILES = ["policy.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]


@settings(deadline=None, max_examples=80)
@given(name=st.sampled_from(FILES), share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere_falls_back(two_saved: Path, name: str, share: float) -> None:
    file = two_saved / "step_000020" / name
    whole = file.read_bytes()
    try:
        file.write_bytes(whole[: int(share * len(whole))])
        found = Checkpoints(directory=two_saved).latest()
    finally:
        file.write_bytes(whole)
    assert found.checkpoint is not None
    assert found.checkpoint.step == 10
    assert [path.name for path, _ in found.skipped] == ["step_000020"]
    assert name in found.skipped[0][1]


@settings(deadline=None, max_examples=60)
@given(name=st.sampled_from(FILES[:3]), share=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_an_altered_byte_falls_back(two_saved: Path, name: str, share: float, flip: int) -> None:
    file = two_saved / "step_000020" / name
    whole = file.read_bytes()
    at = int(share * len(whole))
    try:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        found = Checkpoints(directory=two_saved).latest()
    finally:
        file.write_bytes(whole)
    assert found.checkpoint is not None
    assert found.checkpoint.step == 10
    assert f"{name} does not have the checksum" in found.skipped[0][1]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_falls_back(tmp_path: Path, two_saved: Path, name: str) -> None:
    directory = shutil.copytree(two_saved, tmp_path / "copy")
    (directory / "step_000020" / name).unlink()
    found = Checkpoints(directory=directory).latest()
    assert found.checkpoint is not None
    assert found.checkpoint.step == 10
    assert found.skipped == ((directory / "step_000020", f"{name} is missing"),)
    with pytest.raises(StoreError, match=f"step_000020 is damaged: {name} is missing"):
        Checkpoints(directory=directory).at(20)


def test_a_renamed_checkpoint_is_not_taken_for_another_step(tmp_path: Path, two_saved: Path) -> None:
    directory = shutil.copytree(two_saved, tmp_path / "copy")
    (directory / "step_000020").rename(directory / "step_000030")
    found = Checkpoints(directory=directory).latest()
    assert found.checkpoint is not None
    assert found.checkpoint.step == 10
    assert "step 20; need" in found.skipped[0][1]


def weights(step: int) -> dict[str, torch.Tensor]:
    return {"w": torch.full((20_000,), float(step))}


def save_for_ever(directory: Path, started: Event) -> None:
    checkpoints = Checkpoints(directory=directory, keep=2)
    found = checkpoints.latest().checkpoint
    step = found.step if found else 0
    started.set()
    while True:
        step += 1
        for again in (False, True):
            groups = {"policy": weights(step), "optimizer": weights(-step)}
            checkpoints.save(step, groups, {"step": step, "again": again}, pinned=(1,))


def test_a_kill_anywhere_leaves_a_whole_newest_checkpoint(tmp_path: Path) -> None:
    pick = random.Random(0)
    processes = multiprocessing.get_context("fork")
    last = 0
    for _ in range(25):
        started = processes.Event()
        saver = processes.Process(target=save_for_ever, args=(tmp_path, started))
        saver.start()
        assert started.wait(timeout=60)
        time.sleep(pick.uniform(0.0, 0.08))
        saver.kill()
        saver.join()
        found = Checkpoints(directory=tmp_path).latest()
        assert found.skipped == ()
        if found.checkpoint is None:
            assert last == 0
            continue
        step = found.checkpoint.step
        assert step >= last
        assert found.checkpoint.state()["step"] == step
        assert torch.equal(found.checkpoint.tensors("policy")["w"], weights(step)["w"])
        assert torch.equal(found.checkpoint.tensors("optimizer")["w"], weights(-step)["w"])
        last = step
    assert last > 1
    Checkpoints(directory=tmp_path, keep=1).save(last + 1, {}, {})
    assert names(tmp_path) == [f"step_{last + 1:06d}"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MiB, where the system lets a test have one."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this system does not let a test mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_nothing_that_was_there(small_disk: Path) -> None:
    checkpoints = Checkpoints(directory=small_disk / "run" / "checkpoints")
    checkpoints.save(10, groups(10), STATE)
    before = names(checkpoints.directory)
    with pytest.raises(StoreError) as caught:
        checkpoints.save(20, groups(20, size=100_000), STATE)
    told = str(caught.value)
    assert "disk full while writing" in told
    assert "step_000020" in told
    assert "2,0" in told.split("bytes needed")[0]
    assert f"bough resume {small_disk / 'run'}" in told
    assert f"the newest good checkpoint is {checkpoints.directory / 'step_000010'}" in told
    assert names(checkpoints.directory) == before
    assert checkpoints.latest().skipped == ()
    checkpoints.save(20, groups(20), STATE)
    assert checkpoints.steps() == [10, 20]


def save_with_small_files_only(directory: Path, told: Connection) -> None:
    checkpoints, metrics = Checkpoints(directory=directory), Metrics(directory / "metrics.jsonl")
    checkpoints.save(10, groups(10), STATE)
    metrics.write(1, {"a": 1.0})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
    for save in (
        lambda: checkpoints.save(20, groups(20), STATE),
        lambda: metrics.write(2, {"b" * 90: 1.0}),
        lambda: write_json(directory / "big.json", list(range(100))),
    ):
        try:
            save()
        except StoreError as error:
            told.send(str(error))
    told.send(None)


def test_a_limit_on_file_size_is_a_full_disk_too(tmp_path: Path) -> None:
    processes = multiprocessing.get_context("fork")
    hears, tells = processes.Pipe(duplex=False)
    saver = processes.Process(target=save_with_small_files_only, args=(tmp_path, tells))
    saver.start()
    told = list(iter(hears.recv, None))
    saver.join()
    assert [line.split(":")[0] for line in told] == [
        f"disk full while writing {tmp_path / name}" for name in ("step_000020", "metrics.jsonl", "big.json")
    ]
    assert "what was there before is untouched" in told[2]
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1, "a": 1.0}\n'
    assert names(tmp_path) == ["metrics.jsonl", "step_000010"]


def test_keep_is_checked() -> None:
    with pytest.raises(ValueError, match=r"Checkpoints\.keep: got 0"):
        Checkpoints(directory=Path("x"), keep=0)


def test_a_removal_that_is_interrupted_leaves_no_damaged_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(directory=tmp_path, keep=1)
    checkpoints.save(1, groups(1), STATE)

    def removes_one_file(folder: Path, **_: object) -> None:
        sorted(folder.iterdir())[0].unlink(missing_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", removes_one_file)
        patched.setattr(Checkpoints, "_put", lambda _, temporary, home: temporary.rename(home))
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(2, groups(2), STATE)
    assert checkpoints.steps() == [2]
    with pytest.raises(StoreError, match="got no checkpoint of step 1"):
        checkpoints.at(1)
    (tmp_path / "step_000002").rename(tmp_path / "elsewhere")
    assert checkpoints.latest().skipped == ()
