from pathlib import Path

import pytest
from tests.small import run as small

from bough.evaluate import evaluate, sentence
from bough.store import RunDirectory, StoreError
from bough.train import ConfigError, read_heldout, start


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(small(), tmp_path_factory.mktemp("runs"), terminal=False)


def everything(directory: RunDirectory) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()}


def test_a_checkpoint_is_measured_as_the_run_measured_it(finished: RunDirectory) -> None:
    before = everything(finished)
    found = evaluate(finished.path)
    assert found.step == 24
    assert found.score.successes == read_heldout(finished)[24]
    assert found.low <= found.score.rate <= found.high
    assert found.score.failed == 0
    assert everything(finished) == before, "nothing in the run is changed"


def test_another_step_and_other_tasks(finished: RunDirectory) -> None:
    with pytest.raises(StoreError, match=r"got no checkpoint of step 1; there are those of steps \[23, 24\]"):
        evaluate(finished.path, step=1)
    earlier = evaluate(finished.path, step=23, changes=["heldout.tasks.count=9", "heldout.temperature=0"])
    assert earlier.step == 23
    assert len(earlier.score.successes) == 9
    assert (
        earlier.score.successes
        == evaluate(finished.path, step=23, changes=["heldout.tasks.count=9", "heldout.temperature=0"]).score.successes
    )
    with pytest.raises(ConfigError, match="did you mean 'heldout'"):
        evaluate(finished.path, changes=["heldut.temperature=0"])


def test_the_sentence(finished: RunDirectory) -> None:
    found = evaluate(finished.path, changes=["heldout.tasks.count=4"])
    wins = sum(found.score.successes.values())
    assert sentence(found).startswith(f"step 24: success {wins / 4:.1%} of 4 held-out tasks (95 % interval ")
    assert sentence(found).endswith(" turns a path")


def test_a_run_without_a_checkpoint(finished: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(finished.config.read_bytes())
    with pytest.raises(StoreError, match="got no whole checkpoint; need a run that has saved one"):
        evaluate(tmp_path)
