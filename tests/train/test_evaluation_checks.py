"""Checks: measured on every tree and held-out episode, stored apart, and never trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.small import MEASURED
from tests.train.lengths import run
from tests.trees import chains

from bough.evaluate import evaluate, sentence
from bough.reward import EnvReward, InvalidAction, Judged, Success
from bough.store import RunDirectory, read_metrics, read_trees
from bough.train import Evaluation, Run, Tasks, start
from bough.train.check import check
from bough.train.checks import FIELD, check_metrics, measure_checks
from bough.train.result import Result
from bough.tree import Appraisal, Credited, Floats, Kind, StageError, Tree, Verdict, counted, sum_to_root
from bough.view import reward_findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Huge:
    """A check that would turn every gradient around if it were trained on."""

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"huge": np.where(tree.kind == Kind.ACTION, -1e3 * _sums(tree), 0.0)} for tree in group]


def _sums(tree: Tree) -> Floats:
    """[N] the sum of the tokens of each node."""
    return np.asarray([tree.tokens_of(node).sum() for node in range(tree.nodes)], dtype=np.float64)


def checked(*checks: object) -> Run:
    held = Evaluation(tasks=Tasks(split="test", count=3), every=1, checks=checks)  # type: ignore[arg-type]
    return run().replace(name="checked" if checks else "plain", steps=1, rewards=(EnvReward(),), evaluation=held)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, RunDirectory]:
    folder = tmp_path_factory.mktemp("runs")
    return tuple(start(each, folder, terminal=False) for each in (checked(), checked(Huge(), Success())))  # type: ignore[return-value]


def test_a_run_with_checks_is_bit_equal_to_one_without(both: tuple[RunDirectory, RunDirectory]) -> None:
    """Weights, advantages and every metric but the checks' own: the check is a thousand times the reward."""
    plain, other = both
    weights = [next(each.path.glob("final/*.safetensors")).read_bytes() for each in both]
    assert weights[0] == weights[1]
    own = [
        [{name: row[name] for name in row if not name.startswith(MEASURED) and "check" not in name} for row in rows]
        for rows in (read_metrics(each.metrics) for each in both)
    ]
    assert own[0] == own[1]
    for one, two in zip(*(read_trees(max(each.trees.glob("*.safetensors")), Credited) for each in both), strict=True):
        assert np.array_equal(one.path_advantage, two.path_advantage)
        assert set(one.rewarded.channels) == set(two.rewarded.channels) == {"env"}
        assert np.array_equal(one.rewarded.reward, two.rewarded.reward)
        assert (set(one.rewarded.checks), set(two.rewarded.checks)) == (set(), {"huge", "success"})
    assert not any("check" in name for row in read_metrics(plain.metrics) for name in row)
    assert "huge" in (other.path / "report.html").read_text()
    assert "huge" not in (plain.path / "report.html").read_text()


def test_metrics_are_the_means_of_the_stored_columns(both: tuple[RunDirectory, RunDirectory]) -> None:
    directory = both[1]
    file = max(directory.trees.glob("*.safetensors"))
    row = next(row for row in read_metrics(directory.metrics) if row["step"] == int(file.stem.removeprefix("step_")))
    for name in ("huge", "success"):
        sums = [
            sum_to_root(each.tree, each.rewarded.checks[name])[counted(each.tree)]
            for each in read_trees(file, Credited)
        ]
        assert row[f"check/{name}"] == pytest.approx(np.concatenate(sums).mean())
    assert row["check/success"] == pytest.approx(float(row["train/success"]))
    assert row["heldout/check/success"] == pytest.approx(float(row["heldout/success"]))
    low, high = (float(row[f"heldout/check_{end}/huge"]) for end in ("low", "high"))
    assert low < float(row["heldout/check/huge"]) < high
    table = Result(directory=directory.path).reward_table()
    assert {line.split("  ")[0] for line in table.splitlines()} >= {"env", "check huge", "check success"}


def test_an_evaluation_measures_checks(both: tuple[RunDirectory, RunDirectory]) -> None:
    found = evaluate(both[1].path)
    assert set(found.score.checks) == {"huge", "success"}
    assert {task: bool(value) for task, value in found.score.checks["success"].items()} == found.score.successes
    assert "\ncheck huge: -" in sentence(found)
    changed = evaluate(both[0].path, changes=["evaluation.checks=[InvalidAction(penalty=2)]"])
    assert set(changed.score.checks) == {"invalid_action"}
    assert "huge" not in sentence(changed)


def test_a_check_without_a_value_is_left_out_of_its_own_mean_alone() -> None:
    """A judge that did not answer about one path: the path keeps its reward and the other check."""
    tree = chains([1.0, 0.0])
    first, last = counted(tree).tolist()
    verdict, value = np.zeros(tree.nodes, np.int8), np.full(tree.nodes, np.nan)
    verdict[[first, last]], value[first] = [Verdict.OK, Verdict.LATE], 0.25
    ones = np.zeros(tree.nodes, np.int64)
    column = Appraisal(value=value, verdict=verdict, votes=ones, questions=ones, tokens=ones)
    judged = replace(tree, appraisals={"judge": column})
    metrics = check_metrics([judged], (Judged(), Success()))
    assert (metrics["check/judge"], metrics["check/success"]) == (0.25, 0.5)
    (found,) = measure_checks([judged], (Judged(), Success()))
    assert np.isnan(found.checks["judge"][last])
    assert not np.isnan(found.checks["success"]).any()
    assert len(counted(judged)) == 2


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"evaluation.checks: got Success twice, which write the channel 'success'"):
        check(checked(Success(), Success(weight=2)))
    with pytest.raises(ValueError, match=r"evaluation.checks: got EnvReward, which is one of the rewards too; need a"):
        check(checked(EnvReward()))
    with pytest.raises(ValueError, match=r"needs? .*'judge'"):
        check(checked(Judged()))
    with pytest.raises(ValueError, match=r"Evaluation.checks.0: got int.*; need a Reward"):
        Evaluation(checks=(3,))  # type: ignore[arg-type]

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong:
        def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
            return [{"wrong": np.full(tree.nodes, np.inf)} for tree in group]

    with pytest.raises(StageError, match=rf"{FIELD}=Wrong: channel 'wrong' .* need finite numbers"):
        measure_checks([chains([1.0])], (Wrong(),))
    assert check(checked(InvalidAction())) is None


def rows(check: Sequence[float], success: Sequence[float], reward: Sequence[float]) -> list[dict[str, float | str]]:
    return [
        {"step": at + 1, "phase": "rl", "check/tests": c, "train/success": s, "reward/mean": r, "reward/env": r}
        for at, (c, s, r) in enumerate(zip(check, success, reward, strict=True))
    ]


def test_a_check_that_falls_while_success_rises_is_an_alarm() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, (3, 20))
    up, down, flat = np.linspace(0.2, 0.8, 20), np.linspace(0.8, 0.2, 20), np.full(20, 0.5)
    (found,) = reward_findings(rows(down + noise[0], up + noise[1], flat + noise[2]), 20)
    assert str(found).startswith("the check 'tests' fell from 0.6")
    assert "and success rose from 0.3" in str(found)
    (paid,) = reward_findings(rows(down + noise[0], flat + noise[1], up + noise[2]), 20)
    assert "and the reward rose from" in str(paid)
    for fallen, success, reward in ((flat, up, up), (up, up, up), (down, flat, flat), (down, down, down)):
        assert not reward_findings(rows(fallen + noise[0], success + noise[1], reward + noise[2]), 20)
    assert not reward_findings(rows(down, up, up)[:19], 20), "the window is not over"
    assert not reward_findings(rows(down, up, up), 0)


def test_the_alarm_of_a_check_is_rare_by_chance() -> None:
    """Of 300 runs whose numbers do not move, under one in a hundred has an alarm."""
    rng = np.random.default_rng(1)
    drawn = (rng.normal(0.5, 0.1, (3, 20)) for _ in range(300))
    assert sum(bool(reward_findings(rows(*each), 20)) for each in drawn) <= 3
