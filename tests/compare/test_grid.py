"""The runs of a comparison: their commands, what is read instead of repeated, and what failed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests import forks
from tests.compare.stored_runs import stored_run
from tests.small import run as small

import bough
from bough.cli.compare import read_budget, split_changes
from bough.compare import Grid, GridFolder, Reading, grid
from bough.compare.processes import Ended
from bough.config import ConfigError
from bough.store import StoreError, read_metrics

BRIEF = (
    "steps=20",
    "tasks.count=12",
    "batch_tasks=2",
    "explorer.n=3",
    "warmup.demonstrations=8",
    "warmup.epochs=2",
    "evaluation.tasks.count=4",
    "evaluation.every=1",
    "policy.layers=1",
    "policy.width=32",
    "health.dead_batches=1000",
)

Words = Mapping[str, Sequence[str]]


def forked(commands: Words, jobs: int, logs: Path, environment: Mapping[str, str]) -> Iterator[Ended]:
    """Each as a fork, which needs no imports."""
    del jobs, logs, environment
    for name, words in commands.items():
        with forks.command(*words[words.index("bough") + 1 :]) as process:
            ended = process.wait()
        yield Ended(name=name, status=ended.status, reason=ended.err[-300:] if ended.status else "", seconds=1)


def test_methods_are_trained_to_a_budget_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Words] = []

    def run_all(commands: Words, jobs: int, logs: Path, environment: Mapping[str, str]) -> Iterator[Ended]:
        asked.append(commands)
        return forked(commands, jobs, logs, environment)

    monkeypatch.setattr(grid, "run_all", run_all)
    reading = Reading(budget="tokens", amount=60)
    first = bough.compare(["grpo", "gigpo"], BRIEF, on="frozenlake", seeds=1, reading=reading, out=tmp_path)
    assert [*asked[0]] == ["grpo_frozenlake_seed0", "gigpo_frozenlake_seed0"]
    assert capsys.readouterr().out.startswith("2 runs to train")
    for name in asked[0]:
        tokens = [float(row.get("speed/sampled_tokens", 0)) for row in read_metrics(tmp_path / name / "metrics.jsonl")]
        assert sum(tokens) >= 60 > sum(tokens[:-1])
    assert first.amounts == {"frozenlake": 60}
    assert [(each.method, each.seeds) for each in first.cells] == [("grpo", [0]), ("gigpo", [0])]
    assert (tmp_path / "comparison.md").read_text() == first.text
    assert json.loads((tmp_path / "comparison.json").read_text())["amounts"] == {"frozenlake": 60}
    again = bough.compare([tmp_path], jobs=1)
    assert (asked[1], again.text) == ({}, first.text)
    assert bough.compare([tmp_path], jobs=1, reading=Reading(amount=20)).amounts == {"frozenlake": 20}


def test_a_stopped_run_goes_on_and_a_failed_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Grid(methods=("grpo", "dapo(high=0.3)"), worlds=("small",), seeds=2, changes=("steps=4",))
    folder = GridFolder.open(tmp_path, wanted)
    names = [each.directory.name for each in folder.runs]
    assert names == [f"{name}_small_seed{seed}" for seed in (0, 1) for name in ("grpo", "dapo_high_0.3")]
    done, stopped, unborn, new = names
    results = {step: {"t0": 0.5} for step in (0, 1)}
    stored_run(tmp_path / done, results, tokens=[5])
    (stored_run(tmp_path / stopped, results, tokens=[5]) / "final").rmdir()
    (tmp_path / unborn / "trees").mkdir(parents=True)
    asked: dict[str, list[str]] = {}

    def run_all(commands: Words, jobs: int, logs: Path, environment: Mapping[str, str]) -> Iterator[Ended]:
        assert (jobs, logs, int(environment["OMP_NUM_THREADS"])) == (
            2,
            tmp_path / "logs",
            max(1, grid.os.cpu_count() // 2),
        )  # pyright: ignore
        asked.update({name: [*words[words.index("bough") + 1 :]] for name, words in commands.items()})
        assert not (tmp_path / unborn).exists()
        for name in commands:
            yield Ended(name=name, status=int(name == new), reason="no memory" if name == new else "", seconds=6)

    monkeypatch.setattr(grid, "run_all", run_all)
    said: list[str] = []
    folder.train(2, said.append)
    assert asked == {
        stopped: ["resume", str(tmp_path / stopped)],
        unborn: ["train", "grpo", "steps=4", "seed=1", f"name={unborn}", "--on=small", f"--out={tmp_path}"],
        new: ["train", "dapo(high=0.3)", "steps=4", "seed=1", f"name={new}", "--on=small", f"--out={tmp_path}"],
    }
    assert said[-1] == f"{new} (dapo(high=0.3)): failed: no memory after 0.1 minutes; 0 runs left"
    assert [each.failure for each in GridFolder.open(tmp_path).runs] == ["", "", "", "no memory"]
    asked.clear()
    GridFolder.open(tmp_path).train(2, said.append)
    assert new not in asked
    GridFolder.open(tmp_path, retry=True).train(2, said.append)
    assert new in asked


def test_a_folder_takes_more_methods_worlds_and_seeds_and_no_other_changes(tmp_path: Path) -> None:
    one = Grid(methods=("grpo",), worlds=("a",), seeds=3, changes=("steps=4",))
    GridFolder.open(tmp_path, one)
    more = GridFolder.open(tmp_path, Grid(methods=("gigpo",), worlds=("b",), seeds=2, changes=("steps=4",))).grid
    assert (more.methods, more.worlds, more.seeds) == (("grpo", "gigpo"), ("a", "b"), 3)
    with pytest.raises(ConfigError, match=r"got runs with changes steps=4, and now steps=5 x=1; need the same"):
        GridFolder.open(tmp_path, Grid(methods=("grpo",), worlds=("a",), seeds=3, changes=("steps=5", "x=1")))
    with pytest.raises(ConfigError, match=r"got runs with policy none, and now smollm2"):
        GridFolder.open(tmp_path, Grid(methods=("a",), worlds=("a",), seeds=3, changes=("steps=4",), policy="smollm2"))
    with pytest.raises(StoreError, match=r"got no compare.json; need methods to compare"):
        GridFolder.open(tmp_path / "new")
    (tmp_path / "compare.json").write_text('{"methods": 3}')
    with pytest.raises(StoreError, match=r"compare.json: got no grid of runs"):
        GridFolder.open(tmp_path)


def test_the_world_of_recipes_is_that_of_their_runs(tmp_path: Path) -> None:
    folder = GridFolder.open(tmp_path, Grid(methods=("grpo_small",), worlds=("",), seeds=1))
    assert [(each.directory.name, each.world) for each in folder.runs] == [("grpo_small_seed0", "")]
    stored_run(tmp_path / "grpo_small_seed0", {0: {"t0": 1.0}}, run=small())
    assert [each.world for each in folder.runs] == ["small"]


def test_alike_names_get_numbers(tmp_path: Path) -> None:
    texts = ("dapo(high=0.3)", "dapo[high=0.3]", "path/to/mine.py", "x" * 300)
    names = [each.directory.name for each in Grid(methods=texts, worlds=("",), seeds=1).runs(tmp_path)]
    assert names[:3] == ["dapo_high_0.3_seed0", "dapo_high_0.3~2_seed0", "mine.py_seed0"]
    assert len(names[3]) < 140


def test_arguments_that_can_be_no_grid_are_refused(tmp_path: Path) -> None:
    wrong: dict[str, tuple[Sequence[str], Sequence[str], Mapping[str, object]]] = {
        "methods: got grpo, grpo; need one or more, each once": (["grpo", "grpo"], (), {}),
        "seeds: got 0; need 1 or more": (["grpo"], (), {"seeds": 0}),
        "got seed=3; need other fields": (["grpo"], ["seed=3"], {}),
        "evaluation.every: got 0; need 1 or more": (["grpo"], ["evaluation.every=0"], {}),
        "--jobs: got 0; need 1 or more": (["grpo"], (), {"jobs": 0}),
        "did you mean 'gigpo'": (["gigp"], (), {}),
        "got nothing to compare": ([], (), {}),
        "got methods on frozenlake and sokoban; need one world": (["grpo_frozenlake", "grpo_sokoban"], (), {}),
    }
    for message, (methods, changes, others) in wrong.items():
        with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
            bough.compare(methods, changes, out=tmp_path / "x", **others)  # pyright: ignore[reportArgumentType]


def test_targets_changes_and_budgets_are_told_apart() -> None:
    assert split_changes(["grpo", "dapo(high=0.3)", "a=1", "x.y=[Z(b=2)]", "mine.py:f(a=1)"]) == (
        ["grpo", "dapo(high=0.3)", "mine.py:f(a=1)"],
        ["a=1", "x.y=[Z(b=2)]"],
    )
    assert (read_budget("actions"), read_budget("tokens=2e5")) == (
        Reading(budget="actions"),
        Reading(budget="tokens", amount=200_000),
    )
    for text in ("steps", "tokens=x", "tokens=-1", "seconds=nan"):
        with pytest.raises(ConfigError, match=f"--budget: got '{text}'; need tokens, actions, seconds"):
            read_budget(text)
