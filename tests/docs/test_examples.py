"""The examples run, in small."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bough.cli.app import app
from bough.env import Oracle
from bough.policy import Tiny
from bough.store import RunDirectory, read_metrics
from bough.tree import Outcome, Task
from bough.usercode import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["threads=1", "steps=1", "batch_tasks=2", "explorer.n=2", "limits.turns=3", "evaluation.tasks.count=2"]


def _train(*target: str, changes: Sequence[str]) -> RunDirectory:
    result = CliRunner().invoke(app, ["train", *target, *SMALL, "name=small", *changes])
    assert result.exit_code == 0, result.output
    return RunDirectory.open(Path("runs/small"))


def test_every_example_is_tested() -> None:
    tested = {"bare_loop.py", "nim.py", "own_environment.py", "pretrained_lora.py", "program.py", "sums_agent.py"}
    tested |= {"tools_env.py"}
    assert {file.name for file in EXAMPLES.glob("*.py")} == tested


def test_bare_loop(capsys: pytest.CaptureFixture[str]) -> None:
    file = EXAMPLES / "bare_loop.py"
    rates = load_module(file).train(steps=2, batch_tasks=4, demonstrations=32)
    assert len(rates) == 2
    assert min(rates) > 0.1, "a random policy solves almost none of these tasks"
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2"]
    assert len({line.split()[-1] for line in lines}) == 2, "the loss of a second batch differs"
    assert len(file.read_text().splitlines()) < 150


def test_bare_loop_without_tasks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bare_loop.py", "--batch-tasks", "0"])
    with pytest.raises(SystemExit):
        load_module(EXAMPLES / "bare_loop.py").main()
    assert "--batch-tasks: got 0; need at least 1" in capsys.readouterr().err


def test_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = _train(
        "grpo",
        "--on",
        f"{EXAMPLES / 'own_environment.py'}:world",
        changes=["warmup.demonstrations=4", "warmup.epochs=2", "tasks.count=8"],
    )
    rows = read_metrics(directory.metrics)
    assert [row["phase"] for row in rows] == ["warmup", "warmup", "rl"]
    assert directory.report.is_file()


def test_the_oracle_of_own_environment_solves_every_task() -> None:
    env = load_module(EXAMPLES / "own_environment.py").Shop()
    assert isinstance(env, Oracle)
    tasks = env.tasks("test", 50, seed=0)
    for task in tasks:
        state = env.start(task)
        *goods, last = env.plan(state) or ()
        for good in goods:
            step = env.step(state, good)
            assert (step.valid, step.outcome, step.success) == (True, Outcome.OPEN, False)
            state = step.state
        assert env.step(state, last).success
        assert env.step(state, goods[0]).outcome is Outcome.TERMINATED
        assert not env.step(state, "gold").valid
    assert {task.id for task in tasks}.isdisjoint(task.id for task in env.tasks("train", 400, seed=0))


def test_pretrained_lora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["left down right up _ P O G *"]
    Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=1024).build(texts).save(tmp_path / "model")
    directory = _train(
        str(EXAMPLES / "pretrained_lora.py"),
        changes=["policy.path=model", "policy.dtype=float32", "tasks.count=4"],
    )
    assert (directory.final / "model.safetensors").is_file()


def test_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = _train(str(EXAMPLES / "program.py"), changes=["tasks.count=4"])
    rows = read_metrics(directory.metrics)
    assert {row["phase"] for row in rows} == {"start", "rl"}
    assert directory.report.is_file()


def test_nim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = ["warmup.epochs=1", "policies.second=OwnPolicy()"]
    directory = _train("grpo", "--on", f"{EXAMPLES / 'nim.py'}:world", changes=changes)
    assert (directory.final_of("second") / "model.safetensors").is_file()


@pytest.mark.parametrize("heap", range(5, 25))
def test_the_oracle_of_nim_wins_where_the_first_seat_can(heap: int) -> None:
    env = load_module(EXAMPLES / "nim.py").Nim()
    assert isinstance(env, Oracle)
    state = env.start(Task(id="nim", data={"heap": heap}))
    step = env.step(state, (env.plan(state) or ("",))[0])
    while step.outcome is Outcome.OPEN:
        step = env.step(step.state, (env.plan(step.state) or ("",))[0])
    assert step.successes["first"] == (heap % 4 != 0)
    assert sum(step.payoffs.values()) == 0
