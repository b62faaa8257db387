"""Runs on disk are grouped, read at an equal budget, and held against each other."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.compare.stored_runs import stored_run
from tests.small import run as small

import bough
from bough.compare import Comparison, Contestant, Reading, compare_runs, contestants, read_curve, record, rows
from bough.config import ConfigError
from bough.credit import Gigpo
from bough.store import StoreError
from bough.store.run_status import RunStatus

OTHER = small().replace(credit=Gigpo())


def tasks(*values: float) -> dict[str, float]:
    return {f"t{number}": value for number, value in enumerate(values)}


def table(found: Comparison) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in found.text.splitlines() if line[:2] == "| "
    ]


def test_a_run_is_read_between_its_two_nearest_evaluations(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "a", {0: tasks(0, 1), 2: tasks(1, 1), 4: tasks(1, 0)}, tokens=[10, 30, 20, 40])
    curve, measure = read_curve(run)
    assert measure == "success"
    assert {name: values.tolist() for name, values in curve.spent.items()} == {
        "tokens": [0, 40, 100],
        "actions": [0, 20, 40],
        "seconds": [0, 2, 4],
    }
    at = {amount: curve.at("tokens", amount, ["t1", "t0"]).tolist() for amount in (0, 10, 40, 70, 100, 500)}
    assert at == {0: [1, 0], 10: [1, 0.25], 40: [1, 1], 70: [0.5, 1], 100: [0, 1], 500: [0, 1]}
    assert curve.at("seconds", 3, ["t1"]) == 0.5
    assert curve.reach("tokens") == 100


def test_policies_of_seats_spend_too(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "a", {0: tasks(0), 1: tasks(1)}, tokens=[10])
    metrics = run / "metrics.jsonl"
    metrics.write_text(
        metrics.read_text().replace('"time/step_s"', '"second/speed/sampled_tokens": 5.0, "time/step_s"')
    )
    assert read_curve(run)[0].spent["tokens"].tolist() == [0, 15]


def test_all_are_read_where_the_shortest_ends(tmp_path: Path) -> None:
    stored_run(tmp_path / "a", {0: tasks(0, 0), 4: tasks(1, 1)}, tokens=[25] * 4)
    stored_run(tmp_path / "b", {0: tasks(0, 0), 4: tasks(1, 0)}, tokens=[10] * 4, run=OTHER)
    runs = contestants([tmp_path / "a", tmp_path / "b"])
    found = compare_runs(runs)
    assert found.amounts == {"small": 40}
    assert [each.mean for each in found.cells] == pytest.approx([0.4, 0.5])
    assert [each.spent["tokens"] for each in found.cells] == [100, 40]
    assert [each.gain.mean for each in found.cells] == pytest.approx([0.4, 0.5])
    early = compare_runs(runs, Reading(amount=20))
    assert [each.mean for each in early.cells] == pytest.approx([0.2, 0.25])
    late = compare_runs(runs, Reading(amount=60))
    assert late.amounts == {"small": 40}
    assert "small: b spent only 40 of 60 tokens" in late.text
    assert [each.mean for each in compare_runs(runs, Reading(budget="actions")).cells] == pytest.approx([1, 0.5])


def test_a_run_that_solved_its_tasks_keeps_its_last_value(tmp_path: Path) -> None:
    stored_run(tmp_path / "a", {0: tasks(0), 4: tasks(0)}, tokens=[25] * 4)
    stored_run(tmp_path / "b", {0: tasks(0), 2: tasks(1)}, tokens=[10] * 2, run=OTHER, success=1)
    stored_run(
        tmp_path / "c", {0: tasks(0), 2: tasks(1)}, tokens=[10] * 2, run=OTHER.replace(credit=Gigpo(discount=0.5))
    )
    found = compare_runs(contestants([tmp_path / "a", tmp_path / "b"]))
    assert (found.amounts, found.cells[1].mean) == ({"small": 100}, 1)
    assert compare_runs(contestants([tmp_path / "a", tmp_path / "c"])).amounts == {"small": 20}


def test_runs_that_differ_in_name_and_seed_are_one_method(tmp_path: Path) -> None:
    places = [
        stored_run(tmp_path / name, {0: tasks(0), 1: tasks(1)}, tokens=[5], seed=seed, run=run)
        for name, seed, run in (("grpo_small_seed0", 0, None), ("other", 1, None), ("gigpo-s1", 1, OTHER))
    ]
    found = contestants(places)
    assert [(each.method, each.world, each.seed) for each in found] == [
        ("grpo", "small", 0),
        ("grpo", "small", 1),
        ("gigpo", "small", 1),
    ]
    again = stored_run(tmp_path / "again", {0: tasks(0)}, seed=1)
    with pytest.raises(ConfigError, match=r"again: got the settings and the seed of .*other"):
        contestants([*places, again])
    third = stored_run(tmp_path / "x" / "grpo", {0: tasks(0)}, run=small().replace(credit=Gigpo(discount=0.1)))
    assert contestants([*places, third])[-1].method == "grpo~2"


def five(folder: Path, name: str, successes: list[int], **settings: object) -> list[Path]:
    """Runs of seeds, each of which solves as many tenths of thirty tasks at its end."""
    return [
        stored_run(
            folder / f"{name}_seed{seed}",
            {0: tasks(*[0] * 30), 1: tasks(*[float(task % 10 < count) for task in range(30)])},
            tokens=[100],
            seed=seed,
            **settings,  # pyright: ignore[reportArgumentType]
        )
        for seed, count in enumerate(successes)
    ]


def test_pairs_are_judged_after_correction(tmp_path: Path) -> None:
    places = five(tmp_path, "a", [2, 3, 2, 3, 2]) + five(tmp_path, "b", [8, 9, 9, 8, 9], run=OTHER)
    places += five(tmp_path, "c", [2, 3, 3, 2, 3], run=small().replace(credit=Gigpo(discount=0.1)))
    found = compare_runs(contestants(places), Reading(detect=0.01))
    verdicts = {(each.method, each.against): each.verdict for each in found.pairs}
    assert verdicts == {("b", "a"): "better", ("c", "a"): "unclear", ("c", "b"): "worse"}
    first = found.pairs[0]
    assert first.difference.mean == pytest.approx(0.62)
    assert first.corrected == pytest.approx(3 * min(each.difference.p for each in found.pairs), rel=0.5)
    assert (first.improvement, first.better, first.worse, first.paired, first.seeds) == (1, 21, 0, True, 5)
    assert first.detectable > first.difference.detectable(0.05)
    assert "c against a on small: these runs show a difference of" in found.text
    only = compare_runs(contestants(places), Reading(against="b"))
    assert [(each.method, each.against) for each in only.pairs] == [("a", "b"), ("c", "b")]
    assert table(only)[1][:6] == [
        "a",
        "24.0 %",
        table(only)[1][2],
        "+24.0",
        table(only)[1][4],
        "20.0, 30.0, 20.0, 30.0, 20.0",
    ]


def test_worlds_are_compared_apart_and_together(tmp_path: Path) -> None:
    elsewhere = small().world.replace(name="elsewhere")
    places = [
        place
        for world, run in (("small", small()), ("elsewhere", small().replace(world=elsewhere)))
        for name, changed, counts in (
            ("a", run, [2, 3, 4, 3, 2]),
            ("b", run.replace(credit=Gigpo()), [5, 6, 6, 5, 6]),
        )
        for place in five(tmp_path, f"{name}_{world}", counts, run=changed)
    ]
    found = compare_runs(contestants(places))
    assert [(each.method, each.world) for each in found.pairs] == [
        ("b", "small"),
        ("b", "elsewhere"),
        ("b", "all worlds"),
    ]
    assert found.pairs[2].difference.mean == pytest.approx(0.28)
    assert found.pairs[2].difference.error == pytest.approx(found.pairs[0].difference.error / math.sqrt(2))
    assert "**all worlds**" in found.text


def test_other_seeds_are_compared_as_independent_runs(tmp_path: Path) -> None:
    one = five(tmp_path, "a", [2, 3, 4])
    other = five(tmp_path, "b", [9, 9, 9, 8, 7], run=OTHER)
    found = compare_runs(contestants([*one, *other[3:]]))
    assert (found.pairs[0].paired, found.pairs[0].seeds) == (False, 2)
    assert "compared as independent runs" in found.text
    common = compare_runs(contestants([*one, *other[1:]])).pairs[0]
    assert (common.paired, common.seeds) == (True, 2)
    assert (
        "b against a on small is without seeds 0, 3, 4, which one" in compare_runs(contestants([*one, *other[1:]])).text
    )
    assert common.difference.mean == pytest.approx((9 + 9 - 3 - 4) / 20)


def test_rewards_lead_where_they_are_graded(tmp_path: Path) -> None:
    one = stored_run(tmp_path / "a", {0: tasks(0.1, 0.2), 1: tasks(0.3, 0.6)}, tokens=[5], graded=True)
    other = stored_run(tmp_path / "b", {0: tasks(0, 0), 1: tasks(0.4, 0.4)}, tokens=[5], run=OTHER)
    runs = contestants([one, other])
    assert [each.mean for each in compare_runs(runs).cells] == pytest.approx([0.45, 0.4])
    assert [each.mean for each in compare_runs(runs, Reading(measure="success")).cells] == pytest.approx([0.5, 0])


def test_worlds_with_other_measures_have_no_mean(tmp_path: Path) -> None:
    elsewhere = {"a": small(), "b": OTHER}
    places = five(tmp_path, "a", [1, 2]) + five(tmp_path, "b", [3, 4], run=OTHER)
    for name, run in elsewhere.items():
        other = run.replace(world=run.world.replace(name="elsewhere"))
        places.append(stored_run(tmp_path / f"{name}_elsewhere", {0: tasks(0.1, 0.2)}, run=other, graded=True))
    found = compare_runs(contestants(places))
    assert [each.world for each in found.pairs] == ["small", "elsewhere"]
    assert "there is no mean over worlds" in found.text
    assert compare_runs(contestants(places), Reading(measure="success")).pairs[-1].world == "all worlds"


def test_failed_runs_and_tasks_are_named(tmp_path: Path) -> None:
    runs = contestants(five(tmp_path, "a", [1, 2]) + five(tmp_path, "b", [3, 4], run=OTHER))
    failed = Contestant(method="b", world="small", seed=2, directory=tmp_path / "gone", failure="no | signal\nat all")
    heldout = max((tmp_path / "a_seed0" / "heldout").iterdir())
    known = json.loads(heldout.read_text())
    del known["tasks"]["t3"], known["rewards"]["t3"]
    heldout.write_text(json.dumps(known))
    found = compare_runs([*runs, failed])
    assert len(found.cells[0].tasks) == 29
    assert "1 held-out task left out" in found.text
    assert "- b on small, seed 2, has no result: no \\| signal at all" in found.text
    assert table(found)[2][5].split(", ")[2:] == ["failed"]
    alone = compare_runs([*runs[:2], failed])
    assert (alone.pairs, [*map(bool, (each.seeds for each in alone.cells))]) == ([], [True, False])


def test_runs_that_are_not_over_are_named(tmp_path: Path) -> None:
    runs = contestants(five(tmp_path, "a", [1]) + five(tmp_path, "b", [3], run=OTHER))
    RunStatus(state="stopped", why="Ctrl-C").write(tmp_path / "b_seed0")
    text = compare_runs(runs).text
    assert "- b_seed0 is stopped (Ctrl-C), and is read as far as it is" in text
    assert "a_seed0 is" not in text


def test_one_seed_and_values_that_never_vary_are_pointed_at(tmp_path: Path) -> None:
    places = five(tmp_path, "a", [0]) + five(tmp_path, "b", [10], run=OTHER)
    found = compare_runs(contestants(places))
    assert np.isnan(found.pairs[0].corrected)
    assert found.pairs[0].verdict == "unclear"
    assert "with one seed" in found.text
    assert "values that never vary" in found.text


def test_the_record_is_json_and_the_rows_make_the_same_tables(tmp_path: Path) -> None:
    found = compare_runs(contestants(five(tmp_path, "a", [1, 4]) + five(tmp_path, "b", [3, 4], run=OTHER)))
    assert json.loads(json.dumps(record(found), allow_nan=False))["pairs"][0]["verdict"] == "unclear"
    last = [each for each in rows(found) if each["step"] == max(one["step"] for one in rows(found))]  # pyright: ignore
    assert len(last) == 120
    for cell in found.cells:
        assert np.mean([each["value"] for each in last if each["method"] == cell.method]) == pytest.approx(cell.mean)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = stored_run(tmp_path / "a", {0: tasks(0), 1: tasks(1)}, tokens=[5])
    apart = stored_run(tmp_path / "b", {0: {"z": 1.0}}, run=OTHER)
    empty = stored_run(tmp_path / "c", {}, run=OTHER)
    with pytest.raises(StoreError, match="runs without a common held-out task"):
        bough.compare([one, apart])
    with pytest.raises(StoreError, match="c: got no held-out result; need a run with evaluation"):
        bough.compare([one, empty])
    with pytest.raises(ConfigError, match="against: got 'x'; need one of a"):
        bough.compare([one], reading=Reading(against="x"))
    with pytest.raises(StoreError, match="got a folder that does not exist"):
        bough.compare([tmp_path / "nothing"])
    with pytest.raises(StoreError, match="got a folder without runs"):
        bough.compare([tmp_path / "a" / "final"])
    for mixed in ([one, tmp_path / "a" / "final"], [one, "grpo"], ["grpo", one]):
        with pytest.raises(ConfigError, match="need run directories or methods, of one kind"):
            bough.compare(mixed)
    with pytest.raises(ConfigError, match=r"got runs that are there, and steps=3; need methods"):
        bough.compare([one], ["steps=3"])
    for wrong in ({"budget": "steps"}, {"amount": -1.0}, {"detect": math.nan}, {"measure": "x"}):
        with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}: got"):
            Reading(**wrong)  # pyright: ignore[reportArgumentType]
