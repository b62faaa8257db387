import io
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.config.test_config import RECIPES
from tests.forks import command
from tests.talk import ENVIRONMENT, ONE_STEP, SMALL, Bough

import bough as bough_package
from bough.cli import main
from bough.cli.failure import explained
from bough.methods import SHARED
from bough.view import Live


def test_train_resume_eval(bough: Bough, tmp_path: Path) -> None:
    out = bough("train", f"{SMALL}:run", *ONE_STEP, "name=mine", folder=tmp_path).fine()
    assert out.endswith("report: runs/mine/report.html\n")
    assert "step 1/2 (warm-up)  " in out
    assert "step 2/2  train" in out
    assert bough("resume", "runs/mine", folder=tmp_path).fine().endswith("report: runs/mine/report.html\n")
    out = bough("eval", "runs/mine", "evaluation.tasks.count=3", folder=tmp_path).fine()
    line = r"step 2: success \d+\.\d% of 3 held-out tasks \(95 % interval .*%\), mean episode length [\d.]+ turns"
    # After one step of training further lines count the cut and invalid actions.
    assert re.fullmatch(rf"{line}\n(\d+ of \d+ actions .*\n)*", out)
    assert "got no checkpoint of step 7" in bough("eval", "runs/mine", "--step", "7", folder=tmp_path).error(1)
    config = json.loads((tmp_path / "runs" / "mine" / "config.json").read_text())
    assert config["name"] == "mine"
    assert config["world"]["schedule"]["steps"] == 1


def test_tasks_that_the_oracle_begins_are_told(bough: Bough, tmp_path: Path) -> None:
    late = ("tasks.actions_left=1", "evaluation.tasks.actions_left=99")
    out = bough("train", f"{SMALL}:run", *ONE_STEP, "name=late", *late, folder=tmp_path).fine()
    assert "the oracle begins 12 of 12 tasks (tasks.actions_left=1)" in out
    assert re.search(r"the oracle begins 0 of \d tasks \(evaluation.tasks.actions_left=99\)", out)
    report = (tmp_path / "runs" / "late" / "report.html").read_text()
    assert "The oracle begins tasks: tasks.actions_left=1" in report
    out = bough("search", "runs/late", "Chains(n=1)", "evaluation.tasks.actions_left=1", folder=tmp_path).fine()
    assert re.search(r" of (\d) tasks, \1 of them from a later start \(95 %", out)


def test_list(bough: Bough, tmp_path: Path) -> None:
    for room, some in (
        ("recipes", RECIPES),
        ("env", ("FrozenLake", "Sokoban", "TextWorld")),
        ("policy", ("Tiny", "Pretrained")),
        ("context", ("Full", "Window")),
        ("curate", ("NonZeroAdvantage",)),
    ):
        out = bough("list", room, folder=tmp_path).fine()
        assert all(re.search(rf"^  {name} +\S", out, re.MULTILINE) for name in some), room
    out = bough("list", "Grpo", folder=tmp_path).fine()
    assert "arXiv 2402.03300" in out
    assert "    std: Literal['group', 'batch', 'none'] = 'group'" in out
    for room, pieces in (("credit", ("Grpo", "rloo", "Gigpo", "Gae")), ("objective", ("PpoClip", "gspo", "Dpo"))):
        out = bough("list", room, folder=tmp_path).fine()
        for name in pieces:
            assert re.search(rf"^  {name} +.*arXiv", out, re.MULTILINE), name
        assert "FrozenLake" not in out
    page = bough("list", "grpo", folder=tmp_path).fine()
    assert "arXiv 2402.03300" in page
    assert SHARED in page
    assert "ClassVar" not in bough("list", "Gigpo", folder=tmp_path).fine(), "a constant is no setting"


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("SpiderFolder", "A value of Sql.questions: write `FIELD=SpiderFolder`"),
        ("tools_env", "A function for Python files: from bough.env import tools_env."),
        ("EnvFault", "A class of Python code: from bough.env import EnvFault."),
    ],
)
def test_list_shows_how_to_use_an_export(bough: Bough, tmp_path: Path, name: str, usage: str) -> None:
    assert usage in bough("list", name, folder=tmp_path).fine()


def test_list_finds_entries_by_a_word(bough: Bough, tmp_path: Path) -> None:
    found = bough("list", "judge", folder=tmp_path).fine()
    assert "  spark " in found, "its line has: a judge's verdicts"
    assert "  best_by_judge " in found
    assert "  gigpo " not in found


def test_list_suggests_a_similar_name(bough: Bough, tmp_path: Path) -> None:
    assert "error: unknown name 'grpoo'; did you mean 'Grpo' or 'grpo'?" in bough(
        "list", "grpoo", folder=tmp_path
    ).error(2)
    assert "did you mean 'SpiderFolder'" in bough("list", "SpiderFoldr", folder=tmp_path).error(2)
    assert "see `bough list`" in bough("list", "zzzzzz", folder=tmp_path).error(2)


def test_only_what_can_stand_in_a_field_is_listed_for_it(bough: Bough, tmp_path: Path) -> None:
    for room, there, absent in (
        (
            "explore",
            ("Chains", "Forks"),
            ("LabelParser", "RolloutRunner", "ModelClient", "FirstOracleMistake", "Dream"),
        ),
        ("search", ("mcts", "BestOf", "Search"), ("Uct", "Judge", "Mean")),
        ("evaluate", ("Judge", "RolloutValue"), ("mcts", "Uct")),
        ("env", ("FrozenLake", "Replay"), ("Inline", "Workers")),
        ("parser", ("Plain", "Tagged"), ("Full",)),
        ("hooks", ("Tracker", "UtteranceCritic"), ("NonZeroAdvantage", "ValueHead")),
        ("curate", ("NonZeroAdvantage", "SmallAdvantage"), ("Tracker",)),
        ("read", ("LabelParser", "NumberParser"), ("Chains",)),
    ):
        out = bough("list", room, folder=tmp_path).fine()
        assert all(re.search(rf"^  {name} +\S", out, re.MULTILINE) for name in there), out
        assert not any(re.search(rf"^  {name} ", out, re.MULTILINE) for name in absent), out
    assert "    width: int = 4" in bough("list", "mcts", folder=tmp_path).fine()
    out = bough("list", "Slate", folder=tmp_path).fine()
    assert "Slate (explorers)" in out
    assert "SlateCredit (credit)" in bough("list", "SlateCredit", folder=tmp_path).fine()


def test_the_page_of_a_recipe_has_its_settings(bough: Bough, tmp_path: Path) -> None:
    out = bough("list", "gigpo", folder=tmp_path).fine()
    assert "\n    credit=Gigpo(weight=1.0, discount=0.95, " in out
    assert re.search(r"\n    optimizer=Optimizer\(\n        learning_rate=[\d.e-]+,\n", out)
    assert "name=small" in bough("list", f"{SMALL}:run", folder=tmp_path).fine()
    assert "\n  Grpo " in bough("list", "GRPO", folder=tmp_path).fine()
    assert "did you mean 'mcts'?" in bough("list", "mtcs", folder=tmp_path).error(2)


MINE = """
from collections.abc import Sequence
from dataclasses import dataclass
from bough.credit import Grpo
from bough.tree import Credited, Rewarded


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTurns:
    fade: float = 0.5

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return Grpo()(rewarded)
"""


def test_a_piece_of_ones_own_trains_and_resumes(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "my_credit.py").write_text(MINE)
    bough("train", f"{SMALL}:run", *ONE_STEP, "credit=my_credit.py:FirstTurns(fade=0.8)", folder=tmp_path).fine()
    credit = json.loads((tmp_path / "runs" / "small" / "config.json").read_text())["method"]["credit"]
    assert credit["piece"].endswith("my_credit.py:FirstTurns")
    assert credit["fade"] == 0.8
    (tmp_path / "runs" / "small" / "report.html").unlink()
    bough("resume", tmp_path / "runs" / "small", folder=Path("/")).fine()


def test_a_terminal_of_another_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    monkeypatch.setattr(sys, "argv", ["bough", "list", "NonZeroAdvantage"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    with Live("caf\u00e9", steps=3):
        assert written.getvalue().endswith(b"\ncaf\\xe9: 3 steps\n")


def test_doctor(bough: Bough, tmp_path: Path) -> None:
    out = bough("doctor", folder=tmp_path, missing=["peft"])
    lines = out.fine().splitlines()
    assert all(line.startswith("ok  ") for line in lines), lines
    for about in (
        "bough",
        "python",
        "packages",
        "cpu",
        "gpu",
        "compiler",
        "extra lora",
        "extra openai",
        "extra textworld",
        "disk",
        "training",
    ):
        assert any(line.startswith(f"ok   {about}: ") for line in lines), about
    assert "ok   extra lora: not installed (peft); do: pip install 'bough-rl[lora]'" in lines
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"


def test_help(bough: Bough, tmp_path: Path) -> None:
    out = bough("--help", folder=tmp_path).fine()
    assert all(command in out for command in ("train", "resume", "eval", "list", "doctor"))


@pytest.mark.parametrize(
    ("line", "status", "shown"),
    [
        ("raise KeyError('ours')", 1, "error: a defect of Bough, KeyError: 'ours'; report it with this traceback"),
        ("numpy.zeros(2) + numpy.zeros(3)", 1, "error: a defect of Bough, ValueError: operands could not be broadcast"),
        ("int('three')", 1, "error: a defect of Bough, ValueError: invalid literal"),
        ("os.write(os.open('/dev/full', os.O_WRONLY), b'x')", 1, "\nerror: [Errno 28] No space left on device"),
        ("raise ValueError('got 1; need 2')", 2, "error: got 1; need 2"),
        ("open('/nowhere/at/all')", 2, "error: cannot use /nowhere/at/all: no such file or directory"),
    ],
)
def test_only_a_mistake_has_no_traceback(
    line: str, status: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made: dict[str, Any] = {"numpy": np, "os": os}
    file = Path(bough_package.__file__).with_name("made_up.py")
    exec(compile(f"def command():\n    {line}", str(file), "exec"), made)
    with pytest.raises(SystemExit) as ended:
        explained(made["command"])()
    assert ended.value.code == status
    err = capsys.readouterr().err
    assert shown in err
    assert ("Traceback (most recent call last)" in err) == (status == 1)


def test_debugging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "BOUGH_DEBUG", "1")
    said = command("train", "grpo_nothing", folder=tmp_path).wait()
    assert said.status == 2, "the status is the same as without"
    assert "Traceback" in said.err
    assert "ConfigError: method: unknown name 'grpo_nothing'" in said.err


@pytest.mark.parametrize(("kind", "ignored"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)])
def test_an_interrupted_run_can_go_on(kind: signal.Signals, ignored: bool, bough: Bough, tmp_path: Path) -> None:
    """By Ctrl-C, and by SIGTERM, also where Ctrl-C is ignored."""
    # A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would inherit that.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    process = command("train", f"{SMALL}:slow", "steps=200", "health.dead_batches=999", folder=tmp_path)
    signal.signal(signal.SIGINT, before)
    metrics = tmp_path / "runs" / "slow" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (metrics.is_file() and metrics.read_bytes().count(b"\n") > 20) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send(kind)
    said = process.wait()
    assert said.status == 130, said
    expected = "\ninterrupted; go on with `bough resume runs/slow`\n"
    assert said.err.startswith(expected)
    assert said.err == expected or ignored, "nothing else is printed"
    assert '"state": "stopped", "why": "by ' in (tmp_path / "runs" / "slow" / "report.html").read_text()
    assert bough("eval", "runs/slow", folder=tmp_path).fine()
