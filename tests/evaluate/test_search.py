"""`bough search`: with a checkpoint, with a server's model, stopped and gone on with."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.small import run as small
from tests.talk import ENVIRONMENT

from bough.credit import Gae
from bough.evaluate import search, summary
from bough.objective import PpoClip, Sum, ValueClip
from bough.policy import ValueHead
from bough.store import RunDirectory, StoreError, read_trees
from bough.train import ConfigError, start
from bough.tree import Kind, Tree

EXACT = ["engine=Local(deterministic=true)"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    critical = Sum(terms=(PpoClip(), ValueClip()))
    run = replace(small(), credit=Gae(), critic=ValueHead(), objective=critical, admit=())
    return start(run, tmp_path_factory.mktemp("runs"), terminal=False)


def test_a_search_finds_more_than_a_single_try(finished: RunDirectory) -> None:
    told: list[tuple[int, int]] = []
    once = search(finished.path, ["explorer=BestOf(n=1)"])
    found = search(finished.path, ["explorer=mcts(width=4)"], tell=lambda done, of: told.append((done, of)))
    assert told == [(done, 6) for done in range(1, 7)]
    assert set(found.successes) == set(once.successes)
    assert found.rate > once.rate
    assert found.low <= found.rate <= found.high
    assert found.failed == 0
    assert summary(found).startswith(f"success {found.rate:.1%} of 6 tasks (95 % interval ")
    for name, counted in (("tokens", lambda tree: int(tree.sampled.sum())), ("turns", _steps), ("calls", _calls)):
        mean = sum(counted(tree) for tree in found.trees) / 6
        assert found.cost[name] == pytest.approx(mean), name


def _steps(tree: Tree) -> int:
    return sum("valid" in info for info in tree.info)


def _calls(tree: Tree) -> int:
    return int((tree.kind == Kind.ACTION).sum())


@pytest.mark.parametrize("by", ["puct(width=3)", "beam(width=2)", "best_first()"])
def test_the_critic_of_the_run_is_asked(finished: RunDirectory, by: str) -> None:
    found = search(finished.path, [f"explorer={by}", "heldout.tasks.count=2", "limits.tree_calls=30"])
    scores = [info["score"] for tree in found.trees for info in tree.info if "score" in info]
    # Ends are worth 1, 0 or -1; what a trained head says is none of them.
    assert any(score not in (-1.0, 0.0, 1.0) for score in scores)
    assert all(tree.info[0]["cost"]["calls"] <= 30 for tree in found.trees)  # type: ignore[index]


def test_a_search_needs_what_its_pieces_ask_for(finished: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="explorer: CriticValue asks a critic what places are worth; got none"):
        search(finished.path, ["critic=null", "credit=Grpo", "objective=PpoClip", "explorer=puct()"])
    with pytest.raises(StoreError, match="got a recipe whose engine is Local, and no weights for it"):
        search(small(), ["explorer=mcts()"])
    with pytest.raises(StoreError, match="need one that `bough train` made"):
        search(tmp_path, ["explorer=mcts()"])


def test_a_folder_belongs_to_one_search(finished: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "found"
    changes = ["explorer=BestOf(n=2)", "heldout.tasks.count=3"]
    first = search(finished.path, changes, out=out)
    assert json.loads((out / "results.json").read_text())["tasks"] == first.successes
    before = {path: path.stat().st_mtime_ns for path in (out / "trees").iterdir()}
    again = search(finished.path, changes, out=out)
    assert all(one.equals(other) for one, other in zip(first.trees, again.trees, strict=True))
    assert {path: path.stat().st_mtime_ns for path in (out / "trees").iterdir()} == before, "nothing is grown again"
    with pytest.raises(StoreError, match="got the folder of another search; choose another --out"):
        search(finished.path, ["explorer=BestOf(n=3)", "heldout.tasks.count=3"], out=out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    with pytest.raises(StoreError, match="got a folder that holds something else"):
        search(finished.path, changes, out=tmp_path / "full")


def test_a_killed_search_goes_on_without_losing_a_tree(finished: RunDirectory, tmp_path: Path) -> None:
    changes = ["explorer=BestOf(n=16,enough=null)", "heldout.tasks.count=6", *EXACT]
    command = [sys.executable, "-m", "bough", "search", str(finished.path), *[changes[0].removeprefix("explorer=")]]
    command += [*changes[1:], "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    trees = tmp_path / "killed" / "trees"
    while process.poll() is None and len(list(trees.glob("*.safetensors"))) < 2:
        time.sleep(0.005)
    died = process.poll() is None
    if died:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path: path.read_bytes() for path in trees.glob("*.safetensors")}
    assert len(kept) >= 2
    resumed = search(finished.path, changes, out=tmp_path / "killed")
    assert all(path.read_bytes() == data for path, data in kept.items())
    whole = search(finished.path, changes)
    assert [tree.task.id for tree in resumed.trees] == [tree.task.id for tree in whole.trees]
    assert all(one.equals(other) for one, other in zip(resumed.trees, whole.trees, strict=True))
    assert sum(len(read_trees(path)) for path in trees.glob("*.safetensors")) == 6
