"""Held-out rewards: measured beside success, before it where they are graded; and runs without an evaluation."""

import json
import math
from pathlib import Path

import pytest
from tests.train.lengths import Lengths, run

from bough.engine import Sampling
from bough.evaluate import evaluate, sentence
from bough.store import RunDirectory, read_metrics
from bough.store.heldout import read_heldout_results
from bough.train import Evaluation, HeldoutResult, Tasks, read_heldout, resume, start
from bough.train.evaluation import is_graded
from bough.train.result import Result


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(run(), tmp_path_factory.mktemp("runs"), terminal=False)


def test_graded_rewards_lead(finished: RunDirectory) -> None:
    last = read_heldout_results(finished)[1]
    assert last.graded
    assert set(last.rewards) == set(last.successes) == set(read_heldout(finished)[1])
    assert len({*last.rewards.values()}) > 1
    first, row = read_metrics(finished.metrics)
    mean = sum(last.rewards.values()) / 6
    assert row["heldout/reward"] == pytest.approx(mean)
    assert row["heldout/reward_low"] < mean < row["heldout/reward_high"]  # type: ignore[operator]
    assert row["heldout/reward_channel/env"] == pytest.approx(mean)
    assert {name for name in row if name.startswith("heldout/reward_channel/")} > {"heldout/reward_channel/env"}
    result = Result(directory=finished.path)
    assert str(result).startswith(f"{finished.path}: Held-out reward ")
    assert "Held-out success went from 0.0% before training to 0.0%" in str(result)
    assert result.reward == pytest.approx(mean)
    report = finished.report.read_text()
    assert report.index('"title": "Held-out reward"') < report.index('"title": "Held-out success"')
    assert first["phase"] == "start"


def test_rows_of_a_phase_have_the_same_keys(finished: RunDirectory) -> None:
    learned = [row for row in read_metrics(finished.metrics) if row["phase"] == "rl"]
    assert all(math.isfinite(float(row["reward/mean"])) for row in learned)
    assert len(learned) == 1


def test_the_sentence_of_an_evaluation(finished: RunDirectory) -> None:
    found = evaluate(finished.path)
    assert found.score.rewards == read_heldout_results(finished)[1].rewards
    assert found.reward_low < found.score.reward < found.reward_high
    assert sentence(found).startswith(f"step 1: reward {found.score.reward:.3g} (95 % interval ")
    assert "), success 0.0% of 6 held-out tasks (95 % interval " in sentence(found)
    one = evaluate(finished.path, changes=["evaluation.tasks.count=1"])
    assert "(95 % interval -inf to inf)" in sentence(one)


def test_a_run_without_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Held-out tasks are not even drawn: the environment has none."""
    given = run(Lengths(splits=("train",))).replace(evaluation=Evaluation(tasks=Tasks(split="test", count=6), every=0))
    directory = start(given, tmp_path, terminal=False)
    assert not list(directory.path.glob("heldout/*"))
    (row,) = read_metrics(directory.metrics)
    assert (row["step"], row["phase"]) == (1, "rl")
    assert not [name for name in row if name.startswith("heldout/")]
    assert "No held-out tasks were evaluated." in directory.report.read_text()
    result = Result(directory=directory.path)
    assert (result.success, result.reward, result.heldout) == (None, None, {})
    resume(directory.path, terminal=False)
    assert "already finished" in capsys.readouterr().out
    assert len(evaluate(directory.path, changes=["evaluation.tasks.split=train"]).score.successes) == 6


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Evaluation\.every: got -1; need 0 \(none\) or more"):
        Evaluation(every=-1)
    for temperature in (-1.0, 1e-310, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"Evaluation.temperature: got .*; need 0 \(greedy\), or a finite number"):
            Evaluation(temperature=temperature)
        with pytest.raises(ValueError, match=r"Sampling\.temperature"):
            Sampling(temperature=temperature)


@pytest.mark.parametrize(
    ("paid", "graded"),
    [
        ([({"env": 1.0}, True), ({"env": 0.0}, False), ({"env": 0.0}, False)], False),
        ([({"env": 1.0}, True), ({"env": 0.4}, False), ({"env": 0.0}, False)], True),
        ([({"env": 1.0}, True), ({"env": 0.9}, True)], True),
        ([({"env": 1.0, "invalid": -0.1}, True), ({"env": 0.0, "invalid": -0.2}, False), ({"env": 0.0}, False)], False),
        ([({"mine": 1.0}, False), ({"mine": 0.0}, False)], True),
        ([({"mine": 0.3}, False), ({"mine": 0.3}, False)], False),
        ([], False),
    ],
)
def test_rewards_are_graded_when_they_tell_successes_or_failures_apart(
    paid: list[tuple[dict[str, float], bool]], graded: bool
) -> None:
    channels = {str(i): each for i, (each, _) in enumerate(paid)}
    assert is_graded(channels, {str(i): success for i, (_, success) in enumerate(paid)}) == graded


def test_results_of_before_have_no_rewards(tmp_path: Path) -> None:
    (tmp_path / "heldout").mkdir()
    old = {"step": 3, "temperature": 1.0, "tasks": {"a": True}, "failures": {}}
    (tmp_path / "heldout" / "step_000003.json").write_text(json.dumps(old))
    assert Result(directory=tmp_path).heldout == {3: {"a": True}}
    assert Result(directory=tmp_path).reward is None
    assert math.isnan(HeldoutResult(successes={}, failures={}, turns=0.0, actions=None, trees=()).reward)  # type: ignore[arg-type]
