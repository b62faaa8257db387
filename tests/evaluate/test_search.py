"""`bough search`: with a checkpoint, with a server's model, stopped and gone on with."""

import json
import signal
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from tests.evaluate.broken import break_steps
from tests.forks import command
from tests.small import run as small
from tests.talk import ENVIRONMENT

from bough.config import ConfigError, dump, load
from bough.config.naming import exported
from bough.credit import Gae
from bough.critics import ValueHead
from bough.engine import EngineFault
from bough.evaluate import AllFailed, search, summary
from bough.objective import PpoClip, Sum, ValueClip
from bough.store import RunDirectory, StoreError, read_trees
from bough.train import start
from bough.tree import Kind, Ternary, Tree

EXACT = ["engine=Local(deterministic=true)"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    critical = Sum(terms=(PpoClip(), ValueClip()))
    run = small().replace(credit=Gae(), critic=ValueHead(), objective=critical, filters=())
    return start(run, tmp_path_factory.mktemp("runs"), terminal=False)


def test_a_search_finds_more_than_a_single_try(finished: RunDirectory) -> None:
    told: list[tuple[int, int]] = []
    once = search(finished.path, ["explorer=BestOf(n=1)"])
    found = search(finished.path, ["explorer=mcts(width=4)"], on_progress=lambda done, of: told.append((done, of)))
    assert told == [(done, 6) for done in range(1, 7)]
    assert set(found.successes) == set(once.successes)
    assert found.rate > once.rate
    assert found.low <= found.rate <= found.high
    assert not found.failures
    assert summary(found).startswith(f"success {found.rate:.1%} of 6 tasks (95 % interval ")
    for name, counted in (("tokens", lambda tree: int(tree.sampled.sum())), ("turns", _steps), ("calls", _calls)):
        mean = sum(counted(tree) for tree in found.trees) / 6
        assert found.cost[name] == pytest.approx(mean), name


def test_the_answer_counts_and_not_every_path(finished: RunDirectory) -> None:
    """A judge that rates all paths alike takes one of them, where others solve the task."""
    found = search(finished.path, ["explorer=BestOf(n=8,judge=ConstantValue(),stop_value=null)", *EXACT])
    answers = {tree.task.id: bool(np.any(tree.success[tree.answer] == Ternary.YES)) for tree in found.trees}
    solved = {tree.task.id: bool(np.any(tree.success == Ternary.YES)) for tree in found.trees}
    assert found.successes == answers != solved


def _steps(tree: Tree) -> int:
    return np.sum(tree.valid != Ternary.UNKNOWN)


def _calls(tree: Tree) -> int:
    return int((tree.kind == Kind.ACTION).sum())


@pytest.mark.parametrize("by", ["puct(width=3)", "beam(width=2)", "best_first()"])
def test_the_critic_of_the_run_is_asked(finished: RunDirectory, by: str) -> None:
    found = search(finished.path, [f"explorer={by}", "evaluation.tasks.count=2", "limits.tree_calls=30"])
    scores = [info["score"] for tree in found.trees for info in tree.info if "score" in info]
    # Ends are worth 1, 0 or -1; what a trained head says is none of them.
    assert any(score not in (-1.0, 0.0, 1.0) for score in scores)
    assert all(tree.counts.calls <= 30 for tree in found.trees)


def test_a_search_needs_what_its_pieces_ask_for(finished: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"explorer.evaluate=CriticValue: needs a critic; got critic=None; set"):
        search(finished.path, ["critic=null", "credit=Grpo", "objective=PpoClip", "explorer=puct()"])
    with pytest.raises(StoreError, match="got a run without weights, with the engine Local"):
        search(small(), ["explorer=mcts()"])
    with pytest.raises(StoreError, match="need one that `bough train` made"):
        search(tmp_path, ["explorer=mcts()"])


def test_a_folder_belongs_to_one_search(finished: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "found"
    changes = ["explorer=BestOf(n=2)", "evaluation.tasks.count=3"]
    first = search(finished.path, changes, out=out)
    assert json.loads((out / "results.json").read_text())["tasks"] == first.successes
    before = {path: path.stat().st_mtime_ns for path in (out / "trees").iterdir()}
    again = search(finished.path, changes, out=out)
    assert all(one.equals(other) for one, other in zip(first.trees, again.trees, strict=True))
    assert {path: path.stat().st_mtime_ns for path in (out / "trees").iterdir()} == before, "nothing is grown again"
    with pytest.raises(StoreError, match="got the folder of another search; choose another --out"):
        search(finished.path, ["explorer=BestOf(n=3)", "evaluation.tasks.count=3"], out=out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    with pytest.raises(StoreError, match="got a folder that holds something else"):
        search(finished.path, changes, out=tmp_path / "full")


FUSED = """
import os
import signal

from bough.search import BestOf

grown = []


class Fused(BestOf):
    async def __call__(self, rollout):
        await BestOf.__call__(self, rollout)
        grown.append(rollout)
        if len(grown) == int(os.environ.get("FUSE", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
"""
"""Kills its process at the end of a tree; the earlier ones are on the disk."""


def test_a_killed_search_goes_on_without_losing_a_tree(
    finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece, out = tmp_path / "fused.py", tmp_path / "killed"
    piece.write_text(FUSED)
    explorer, changes = f"{piece}:Fused(n=2,stop_value=null)", ["evaluation.tasks.count=6", *EXACT]
    with monkeypatch.context() as patch:
        patch.setitem(ENVIRONMENT, "FUSE", "3")
        killed = command("search", finished.path, explorer, *changes, "--out", out).wait()
    assert killed.status == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (out / "trees").glob("*.safetensors")}
    assert len(kept) == 2
    resumed = search(finished.path, [f"explorer={explorer}", *changes], out=out)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was stored is not grown again"
    whole = search(finished.path, [f"explorer={explorer}", *changes])
    assert [tree.task.id for tree in resumed.trees] == [tree.task.id for tree in whole.trees]
    assert all(one.equals(other) for one, other in zip(resumed.trees, whole.trees, strict=True))
    assert sum(len(read_trees(path)) for path in (out / "trees").glob("*.safetensors")) == 6


def test_a_search_in_which_every_task_failed_has_no_result(
    finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, changes = tmp_path / "closed", ["explorer=BestOf(n=2)", "evaluation.tasks.count=2"]
    with monkeypatch.context() as patch:
        break_steps(patch, lambda _: True)
        with pytest.raises(AllFailed, match=r"got 2 tasks that all failed; .* The cause: .*the lake is closed"):
            search(finished.path, changes, out=out)
    assert not (out / "results.json").exists()
    # What failed is not kept, so the same command searches it again.
    assert len(search(finished.path, changes, out=out).successes) == 2


def test_a_server_that_does_not_answer() -> None:
    nobody = "engine=OpenAi(model=x,base_url=http://127.0.0.1:9/v1,retries=0)"
    with pytest.raises(EngineFault, match=r"^http://127\.0\.0\.1:9/v1: the connection broke"):
        search(small(), ["explorer=BestOf(n=1)", nobody, "evaluation.tasks.count=2"])


def test_a_task_of_which_every_path_failed_enters_no_rate(
    finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three tasks side by side the first loses its only path at its first step."""
    break_steps(monkeypatch, lambda number: number == 0)
    found = search(finished.path, ["explorer=BestOf(n=1)", "evaluation.tasks.count=3"], out=tmp_path / "found")
    (lost,) = found.failures
    assert "the lake is closed" in found.failures[lost]
    assert len(found.successes) == 2
    assert lost not in found.successes
    assert found.rate == sum(found.successes.values()) / 2
    assert summary(found).startswith(f"success {found.rate:.1%} of 2 tasks (95 % interval ")
    assert f"\n1 task failed and does not count: {found.failures[lost]}" in summary(found)
    written = json.loads((tmp_path / "found" / "results.json").read_text())
    assert (written["success"], written["failed"]) == (found.rate, 1)
    assert written["failures"] == found.failures
    assert written["tasks"] == found.successes


def test_paths_that_failed_beside_others_are_counted(finished: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    break_steps(monkeypatch, lambda number: number == 0)
    found = search(finished.path, ["explorer=BestOf(n=4,stop_value=null)", "evaluation.tasks.count=2"])
    assert not found.failures
    assert found.faults == 1
    assert "\npaths of these tasks that failed: 1" in summary(found)


def test_cut_and_invalid_actions_are_counted(finished: RunDirectory) -> None:
    """An action takes two tokens here, a word and the end of the turn: with one allowed, all are cut off."""
    changes = ["explorer=BestOf(n=1)", "evaluation.tasks.count=2"]
    found = search(finished.path, [*changes, "sampling.max_tokens=1"])
    assert found.actions.cut == found.actions.actions > 0
    line = f"{found.actions.cut} of {found.actions.actions} actions (100.0%) were cut off at the token limit"
    assert f"\n{line}; raise sampling.max_tokens" in summary(found)
    assert found.actions.invalid == sum(np.sum(tree.valid == Ternary.NO) for tree in found.trees)


def test_every_search_is_written_down_and_read_back() -> None:
    """A folder of a search, and of a run, has its configuration: each field of each piece."""
    made: list[str] = []
    for name, published in exported("bough.searches"):
        required = [each for each in signature(published).parameters.values() if each.default is each.empty]
        written = json.dumps(dump(published(*("name" for _ in required))))
        assert json.dumps(dump(load(json.loads(written)))) == written, name
        made.append(name)
    assert {"ets", "rebase", "mcts"} <= set(made)
