"""Rows are confirmed by short runs with the code of two commits; here the code is a few lines in a small repository."""

import inspect
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

import confirm
import no_harm
import result_rows

FIXED = {
    "bench/rule_server.py": """
from contextlib import nullcontext

def serve():
    return nullcontext("url")
""",
    "bench/no_harm.py": """
import json
from pathlib import Path

import computed

HELDOUT = 200

def _folder(out, method, seed):
    return out / f"{method}_seed{seed}"

def _run(command, url):
    return None

def _start(run, seed):
    return Path(f"warmed with {computed.START}")

def _measure(arguments, method, command, seed):
    folder = _folder(arguments.out, method, seed)
    folder.mkdir(exist_ok=True)
    warmed = _start(None, seed)
    lines = [computed.metrics(step) for step in range(1, arguments.steps + 1)]
    weights = [str(warmed), *(line.pop("weight") for line in lines)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps({"phase": "rl", **line}) + "\\n" for line in lines))
    before = str(computed.START)[:HELDOUT]
    (folder / "row.json").write_text(json.dumps({"before": before, "weights": str(weights)}))
""",
}
PAST = """
START = 1011

def metrics(step):
    return {"weight": step * 2, "optimizer/gradient_norm": 1.0, "own": 0.5, "time/s": 1.0}
"""
ROW = {"method": "grpo", "command": "train", "seed": 0, "steps": 40, "before": "1011", "own": {"own": 0.5}}
USED = (no_harm._folder, no_harm._run, no_harm._start, no_harm._measure)
SAME: dict[str, str] = {}


@pytest.mark.parametrize(
    ("both", "present", "expected"),
    [
        (SAME, {"step * 2": "step + step", '"time/s": 1.0': '"time/s": 2.0'}, (3, "")),
        (SAME, {"step * 2": "step * 3"}, (0, "after 3 steps: other weights")),
        (SAME, {"step * 2": "step * (2 + (step == 3))"}, (0, "after 3 steps: other weights")),
        (SAME, {'"own": 0.5': '"own": 0.25'}, (0, "after 3 steps: other own")),
        (SAME, {"1011": "1111"}, (0, "the warmed policy has other successes")),
        (SAME, {"step * 2": "1 / 0"}, (0, "present code: ZeroDivisionError: division by zero")),
        ({'norm": 1.0': 'norm": 0.0'}, SAME, (0, "no gradient")),
        ({'"own": 0.5': '"own": float(step > 4)'}, SAME, (6, "")),
        ({'"own": 0.5': '"own": float(step > 20)'}, SAME, (0, "always 0: own")),
    ],
)
def test_a_row_holds_where_both_codes_compute_the_same_and_the_mechanism_acts(
    both: dict[str, str],
    present: dict[str, str],
    expected: tuple[int, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confirm, "ROOT", tmp_path)
    code = _edited(PAST, both)
    _commit(tmp_path, {**FIXED, "src/computed.py": code})
    with confirm.checkout("HEAD") as there:
        _commit(tmp_path, {"src/computed.py": f"# The present one.\n{_edited(code, present)}"})
        with (
            closing(confirm.ShortRuns(there, tmp_path / "past", 1, 1)) as old,
            closing(confirm.ShortRuns(tmp_path, tmp_path / "present", 200, 1)) as new,
        ):
            assert confirm.confirm(ROW, old, new) == expected
    assert not there.exists()


def test_a_row_of_few_steps_is_measured_again(tmp_path: Path) -> None:
    runs = confirm.ShortRuns(tmp_path, tmp_path, 1, 1)
    assert confirm.confirm({**ROW, "steps": 3}, runs, runs) == (0, "its 3 steps are too few for short runs")


def test_what_short_runs_use_is_there() -> None:
    names = {each.__name__: [*inspect.signature(each).parameters] for each in USED}
    assert names == {
        "_folder": ["out", "method", "seed"],
        "_run": ["command", "url"],
        "_start": ["run", "seed"],
        "_measure": ["arguments", "method", "command", "seed"],
    }
    assert no_harm.HELDOUT


@pytest.mark.parametrize(("found", "confirmed"), [((3, ""), True), ((0, "no gradient"), False)])
def test_a_confirmed_row_says_where_and_is_not_old(
    found: tuple[int, str],
    confirmed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The row's commit is unknown, so that it is old until it is confirmed."""
    command = "bough train grpo --on sokoban"
    monkeypatch.setattr(no_harm, "printed", lambda: {"grpo": command})
    row = {**ROW, "command": command, "failed": "", "commit": "f" * 12, "minutes": 1.0, "sources": []}
    monkeypatch.setattr(no_harm, "FILE", tmp_path / "rows.jsonl")
    monkeypatch.setattr(no_harm, "checkout", nullcontext)
    monkeypatch.setattr(no_harm, "confirm", lambda *_: found)
    result_rows.add_row(no_harm.FILE, row, ["method"])
    monkeypatch.setattr(sys, "argv", ["no_harm.py", "grpo", "--confirm", f"--out={tmp_path}"])
    no_harm.main()
    assert ("confirmed by 3 steps" if confirmed else "to be measured again: no gradient") in capsys.readouterr().out
    (kept,) = result_rows.read_rows(no_harm.FILE)
    assert ("confirmed" in kept) is confirmed
    assert result_rows.changed(kept) is not confirmed
    if confirmed:
        assert kept["confirmed"]["commit"] == result_rows.commit()
        assert "src/bough/methods/grpo.py" in kept["confirmed"]["sources"]
        assert no_harm._commits(kept) == f"ffffffff, confirmed at {result_rows.commit()[:8]} (3 steps)"


def _edited(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def _commit(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    if not (root / ".git").is_dir():
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "change", "--allow-empty"], cwd=root, check=True)
