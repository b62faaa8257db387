"""How a run ended, from its folder alone."""

import json
from pathlib import Path

import pytest

from bough.store import RunStatus, StepLines, StoreError, owned, run_status


def test_each_end_of_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    assert run_status(tmp_path).state == "stopped"
    (tmp_path / "final").mkdir()
    assert run_status(tmp_path).state == "done"
    RunStatus(state="training").write(tmp_path)
    found = run_status(tmp_path)
    assert found.state == "crashed"
    assert found.why.startswith("the process ended without a word")
    with owned(tmp_path / "run.lock"):
        assert run_status(tmp_path).state == "training"
        assert "process" in run_status(tmp_path).why
    RunStatus(state="stopped", why="by Ctrl-C").write(tmp_path)
    found = run_status(tmp_path)
    assert (found.state, found.why) == ("stopped", "by Ctrl-C")
    assert found.at


@pytest.mark.parametrize("wrong", [{}, {"state": "x", "why": "", "at": ""}, {"state": "done", "why": 1, "at": ""}])
def test_a_damaged_status_is_named(wrong: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps(wrong))
    with pytest.raises(StoreError, match=r"status\.json: got no status of a run; need the file as the run wrote it"):
        run_status(tmp_path)


def test_records_of_steps_are_dropped_when_a_run_goes_on_from_an_earlier_one(tmp_path: Path) -> None:
    lines = StepLines(tmp_path / "alarms.jsonl")
    assert lines.read() == []
    for step in (1, 2, 3):
        lines.append(step, {"kind": "cuts"})
    with (tmp_path / "alarms.jsonl").open("a") as file:
        file.write('[1]\n{"step": true}\n{"st')
    assert [each["step"] for each in lines.read()] == [1, 2, 3]
    lines.drop_after(2)
    assert lines.read() == [{"step": 1, "kind": "cuts"}, {"step": 2, "kind": "cuts"}]
