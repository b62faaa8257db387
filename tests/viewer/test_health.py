"""The health of a run: the terminal's alarms, causes of failed episodes, signs, time by stage."""

from pathlib import Path
from typing import Any

from bough.store import RunDirectory, StepLines
from bough.view import Alarm
from bough.viewer.health import health
from bough.viewer.stored_trees import PerFile


def row(step: int, **values: float) -> dict[str, Any]:
    names = {name.replace("__", "/"): value for name, value in values.items()}
    return {"step": step, "phase": "rl", "train/paths": 8.0, "groups/total": 4.0, **names}


def signs(*rows: dict[str, Any], folder: Path) -> dict[str, Any]:
    found: Any = health(RunDirectory(path=folder), rows)
    return {sign["title"]: sign for sign in found["signs"]}


def test_alarms_are_those_of_the_terminal_one_a_kind_the_newest_first(tmp_path: Path) -> None:
    lines = StepLines(tmp_path / "alarms.jsonl")
    given = {kind: Alarm(kind=kind, found=f"{kind} found", meaning="It means", action="Do it") for kind in "ab"}
    for step, kind in ((1, "a"), (2, "b"), (3, "a")):
        lines.append(step, given[kind].record())
    found: Any = health(RunDirectory(path=tmp_path), [])
    assert [(each["kind"], each["first"], each["step"], each["times"]) for each in found["alarms"]] == [
        ("a", 1, 3, 2),
        ("b", 2, 2, 1),
    ]
    assert str(given["a"]) == "a found. It means. Do it."
    assert all(found["alarms"][0][name] == text for name, text in given["a"].record().items())


def test_failed_episodes_are_counted_by_cause(tmp_path: Path) -> None:
    lines = StepLines(tmp_path / "faults.jsonl")
    lines.append(4, {"faults": {"late": 2, "gone": 1}})
    lines.append(6, {"faults": {"late": 3}})
    found: Any = health(RunDirectory(path=tmp_path), [])
    assert found["faults"] == [
        {"cause": "late", "episodes": 5, "last": 6},
        {"cause": "gone", "episodes": 1, "last": 4},
    ]


def test_groups_without_a_signal_are_a_sign_also_without_filters(tmp_path: Path) -> None:
    some = signs(row(1, groups__without_signal=1.0, groups__dropped=0.0), folder=tmp_path)
    assert some["Groups without a signal"]["now"] == 0.25
    assert not some["Groups without a signal"]["action"]
    assert "Groups that filters dropped" not in some, "no filter dropped any"
    most = signs(row(1, groups__without_signal=3.0, groups__dropped=3.0), folder=tmp_path)
    assert "explorer.n" in most["Groups without a signal"]["action"]
    assert most["Groups that filters dropped"]["now"] == 0.75


def test_malformed_and_missing_calls_are_shares(tmp_path: Path) -> None:
    found = signs(row(1, calls__total=20.0, calls__malformed=5.0, calls__missing=6.0), folder=tmp_path)
    assert found["Malformed calls"]["now"] == 0.25
    assert "grammar" in found["Malformed calls"]["action"]
    assert found["Episodes without a call"]["now"] == 0.75
    assert found["Episodes without a call"]["action"]
    assert "Malformed calls" not in signs(row(1), folder=tmp_path), "a run without tools"


def test_time_is_summed_by_stage_over_all_phases(tmp_path: Path) -> None:
    warm = {"step": 1, "phase": "warmup", "time/learn_s": 4.0}
    found: Any = health(RunDirectory(path=tmp_path), [warm, row(2, time__learn_s=1.0, time__grow_s=2.5)])
    assert found["stages"]["total"]["learn"] == 5.0
    assert found["stages"]["total"]["grow"] == 2.5
    assert found["stages"]["seconds"]["learn"] == [1.0]


def test_a_result_is_made_once_for_each_file_and_rule(tmp_path: Path) -> None:
    made: list[tuple[str, str]] = []

    def make(file: Path, rule: str) -> str:
        made.append((file.name, rule))
        return f"{file.name} {rule} {file.read_text()}"

    kept = PerFile(make, most=2)
    file = tmp_path / "a"
    file.write_text("1")
    for rule in ("", "rloo", "", "rloo"):
        assert kept.get(file, rule) == f"a {rule} 1"
    assert made == [("a", ""), ("a", "rloo")]
    file.write_text("22")
    assert kept.get(file, "rloo") == "a rloo 22", "the file has changed"
    kept.get(file, "ppo")
    kept.get(file, "")
    assert len(made) == 5, "the oldest of three was dropped"
