import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.evaluate.broken import break_steps
from tests.small import run as small

from bough.config import ConfigError
from bough.env import State
from bough.evaluate import AllFailed, evaluate, sentence
from bough.learner import Diverged
from bough.store import RunDirectory, StoreError, read_metrics
from bough.train import HeldoutResult, read_heldout, start
from bough.train.recorder import RunRecorder
from bough.tree import ActionCounts, Task
from bough.view import Live
from bough.worlds.frozenlake import FrozenLake


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    warm = replace(small().world.evaluation, temperature=2.0)
    return start(small().replace(evaluation=warm), tmp_path_factory.mktemp("runs"), terminal=False)


def everything(directory: RunDirectory) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()}


def test_a_checkpoint_is_measured_as_the_run_measured_it(finished: RunDirectory) -> None:
    before = everything(finished)
    found = evaluate(finished.path)
    assert found.step == 24
    assert found.score.successes == read_heldout(finished)[24]
    row = next(row for row in read_metrics(finished.metrics) if row["step"] == 24)
    assert found.score.turns == row["heldout/turns"]
    assert found.score.actions.shares == {name: row[f"heldout/{name}"] for name in ("cut_actions", "valid_actions")}
    assert found.low <= found.score.rate <= found.high
    assert not found.score.failures
    assert everything(finished) == before, "nothing in the run is changed"


def test_another_step_and_other_tasks(finished: RunDirectory) -> None:
    with pytest.raises(StoreError, match=r"got no checkpoint of step 1; there are those of steps \[23, 24\]"):
        evaluate(finished.path, step=1)
    earlier = evaluate(finished.path, step=23, changes=["evaluation.tasks.count=9", "evaluation.temperature=0"])
    assert earlier.step == 23
    assert len(earlier.score.successes) == 9
    assert (
        earlier.score.successes
        == evaluate(
            finished.path, step=23, changes=["evaluation.tasks.count=9", "evaluation.temperature=0"]
        ).score.successes
    )
    with pytest.raises(ConfigError, match="heldut: unknown name 'heldut'"):
        evaluate(finished.path, changes=["heldut.temperature=0"])


def test_the_temperature_of_an_evaluation_is_that_of_its_settings(finished: RunDirectory) -> None:
    cold, same, hot = (
        [tree.token.tolist() for tree in evaluate(finished.path, changes=[change]).score.trees]
        for change in ("evaluation.temperature=0", "evaluation.temperature=0", "evaluation.temperature=2")
    )
    assert cold == same != hot


def test_the_sentence(finished: RunDirectory) -> None:
    found = evaluate(finished.path, changes=["evaluation.tasks.count=4"])
    wins = sum(found.score.successes.values())
    assert sentence(found).startswith(f"step 24: success {wins / 4:.1%} of 4 held-out tasks (95 % interval ")
    assert ", mean episode length " in sentence(found).splitlines()[0]
    late = evaluate(finished.path, changes=["evaluation.tasks.count=4", "evaluation.tasks.actions_left=1"])
    assert " of 4 held-out tasks, 4 of them from a later start (95 % interval " in sentence(late)


def test_demonstrations_of_held_out_tasks_are_imitated_and_left_out(finished: RunDirectory) -> None:
    before = everything(finished)
    changes = ["evaluation.tasks.count=20", "evaluation.temperature=0", "warmup.learning_rate=0.003"]
    found, plain = evaluate(finished.path, shots=10, changes=changes), evaluate(finished.path, changes=changes)
    assert found.before is not None
    assert [*found.score.successes] == [*found.before.successes] == [*plain.score.successes][10:]
    assert [*found.before.successes.values()] == [*plain.score.successes.values()][10:]
    spoken = [[tree.token.tolist() for tree in each.score.trees] for each in (plain, found)]
    assert spoken[0][10:] != spoken[1], "the engine has the adapted weights"
    assert f"after 10 demonstrations of other held-out tasks; before them success {found.before.rate:.1%}" in str(found)
    assert everything(finished) == before, "the weights on disk stay"


def test_shots_need_tasks_beside_them(finished: RunDirectory) -> None:
    with pytest.raises(ConfigError, match=r"shots: got 4 with 4 held-out tasks; need at least one task more"):
        evaluate(finished.path, shots=4, changes=["evaluation.tasks.count=4"])
    with pytest.raises(ConfigError, match=r"shots: got -1; need 0 or more"):
        evaluate(finished.path, shots=-1)


def test_shots_that_end_with_useless_weights_are_an_error(finished: RunDirectory) -> None:
    changes = ["evaluation.tasks.count=4", "warmup.learning_rate=1e30", "warmup.epochs=1"]
    words = (
        r"shots: .*learning_rate=1e\+30: update \d+: got weights that are not finite after it, or above 1e\+18; need"
    )
    with pytest.raises(Diverged, match=words):
        evaluate(finished.path, shots=1, changes=changes)


def test_a_run_without_a_checkpoint(finished: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(finished.config.read_bytes())
    with pytest.raises(StoreError, match="got no whole checkpoint; need a run that has saved one"):
        evaluate(tmp_path)


def test_a_checkpoint_whose_tasks_all_failed_has_no_rate(
    finished: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_steps(monkeypatch, lambda _: True)
    with pytest.raises(AllFailed, match=r"got 6 tasks that all failed; .* The cause: .*the lake is closed"):
        evaluate(finished.path)


def test_tasks_that_failed_are_shown_beside_the_rate(finished: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    start, first = FrozenLake.start, evaluate(finished.path).score.trees[0].task.id

    def failing(self: FrozenLake, task: Task) -> State:
        if task.id == first:
            raise RuntimeError("no such lake")
        return start(self, task)

    monkeypatch.setattr(FrozenLake, "start", failing)
    found = evaluate(finished.path, changes=["evaluation.tasks.count=6"])
    assert list(found.score.failures) == [first]
    assert len(found.score.successes) == 5
    assert "\n1 task failed and does not count: " in sentence(found)


def test_an_evaluation_of_a_run_in_which_every_task_failed_writes_no_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small()
    directory = RunDirectory.create(tmp_path / "run")
    score = HeldoutResult(
        successes={},
        failures={"a": "no such lake", "b": "no such lake"},
        turns=math.nan,
        actions=ActionCounts(),
        trees=(),
    )
    recorder = RunRecorder(run, directory, Live("run", 1, terminal=False))
    recorder.log_evaluation(0, score)
    recorder.write_step(0)
    (row,) = read_metrics(directory.metrics)
    assert row["heldout/failed"] == 2
    assert not [name for name in row if name.startswith("heldout/") and name != "heldout/failed"]
    assert read_heldout(directory) == {}
    assert "held-out: 2 tasks failed and do not count: no such lake" in capsys.readouterr().out


@pytest.mark.parametrize(("cut", "told"), [(1, False), (3, True)])
def test_an_evaluation_with_many_cut_actions_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: int, told: bool
) -> None:
    directory = RunDirectory.create(tmp_path / "run")
    counts = ActionCounts(actions=40, cut=cut, invalid=10)
    score = HeldoutResult(successes={"a": True}, failures={}, turns=1.0, actions=counts, trees=())
    recorder = RunRecorder(small(), directory, Live("run", 1, terminal=False))
    recorder.log_evaluation(0, score)
    recorder.write_step(0)
    (row,) = read_metrics(directory.metrics)
    assert (row["heldout/cut_actions"], row["heldout/valid_actions"]) == (cut / 40, 0.75)
    recorder.log_evaluation(1, score)
    line = "held-out: 3 of 40 actions (7.5%) were cut off at the token limit."
    assert capsys.readouterr().out.count(line) == told, "the second evaluation prints no second line"
