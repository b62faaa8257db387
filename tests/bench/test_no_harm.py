"""The tables of harm and of printed commands: rows, verdicts and their age; the trainings themselves take hours."""

import re
from pathlib import Path

import pytest

import no_harm
import result_rows
import rule_server
from bough.appraise.path_critique import PATH as CRITIQUE
from bough.appraise.path_critique import WrongSteps
from bough.appraise.verification import PATH as VERIFY
from bough.cli.find import find_run, find_world
from bough.searches.spar import OBEYS
from printed_commands import made_by, own_metrics

FINE = {"seed": 0, "world": "sokoban", "failed": "", "own": {}, "minutes": 1.0, "commit": "0123456789ab"}


def test_a_fall_is_named_and_seeds_are_pooled() -> None:
    rows = [
        {**FINE, "method": "worse", "before": "1" * 60 + "0" * 40, "after": "1" * 30 + "0" * 70, "weights": "a"},
        {**FINE, "method": "worse", "seed": 1, "before": "1" * 50, "after": "1" * 50, "weights": "b"},
        {**FINE, "method": "same", "before": "10" * 50, "after": "10" * 50, "weights": "c"},
        {**FINE, "method": "twin", "before": "10" * 50, "after": "10" * 50, "weights": "c", "own": {"loss/x": 0.5}},
        {**FINE, "method": "broken", "failed": "no group", "before": "", "after": "", "weights": "d"},
    ]
    worse, same, twin, broken = no_harm.table(rows)[2:6]
    assert "| 73.3 | 53.3 | -20.0 (" in worse
    assert "**falls**" in worse
    assert "**falls**" not in same
    assert "loss/x 0.5, weights of same" in twin
    assert "failed: no group" in broken


def test_the_page_says_why_each_falling_method_falls() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    rows, _, rest = page.partition("<!-- no harm -->")[2].partition("<!-- end of no harm -->")
    reasons = re.findall(r"`(\w+)`", rest.partition("\n## ")[0])
    methods = {line.split("|")[1].strip(): "**falls**" in line for line in rows.splitlines() if line.startswith("| ")}
    falling = {name for name, falls in methods.items() if falls}
    assert falling == {*reasons} & {*methods}, "the sentences below the table are about the methods that fall"


def test_an_own_metric_is_one_that_the_base_does_not_write() -> None:
    rows = [{"loss/total": 1.0, "loss/own": 1.0, "time/own_s": 9.0}, {"loss/total": 1.0, "loss/own": 3.0}]
    assert own_metrics(rows, ["loss/total"]) == {"loss/own": 2.0}


def test_every_method_has_a_printed_command_whose_run_can_be_built() -> None:
    commands = no_harm.printed()
    assert next(iter(commands)) == "grpo"
    assert {"st_ppo", "slate", "iwocs"} <= {*commands}
    assert all(command.split()[1] == "train" for command in commands.values())


ASKED = "The agent was told:\n{told}\n\nWhat happened:\n{turns}\n\nIts steps, by number:\n{steps}\n\n"


def test_the_server_knows_right_steps_and_right_answers() -> None:
    steps = ["max 9 9", "row 1 1 4", "row 1 0 3", "hello", "solve"]
    asked = ASKED.format(
        told="model",
        turns="profit 3 2. wood 1 1 limit 4. steel 1 0 limit 2.\n> max 9 9",
        steps="\n".join(f"{at}. {each}" for at, each in enumerate(steps, start=1)),
    )
    assert rule_server.answer(f"{asked}{VERIFY.rpartition('{steps}')[2]}", 0) == "[0, 1, 0, 0, 1] no"
    assert all(
        WrongSteps()(rule_server.answer(f"{asked}{CRITIQUE.rpartition('{steps}')[2]}", seed)) is not None
        for seed in range(9)
    )
    (task,) = find_world("code").env.tasks("train", 1, 0)
    told = f"The agent was told:\nwrite\n\nWhat happened:\n{task.data['prompt']}\n> x * x\n> {task.data['answer']}\n\n"
    right = OBEYS.partition("\n\n")[2].rpartition("\n")[2]
    assert rule_server.answer(told + right, 0) == "yes"
    assert rule_server.answer(told.replace(f"> {task.data['answer']}", "> x") + right, 0) == "no"


def test_a_run_that_a_command_reads_is_made_by_its_training() -> None:
    assert made_by("starwm_sokoban", ["bough train starwm --on sokoban"]) == "bough train starwm --on sokoban"
    assert made_by("grpo_sokoban", []) == "bough train grpo_sokoban"


def test_a_row_replaces_the_one_with_its_key(tmp_path: Path) -> None:
    file = tmp_path / "new" / "rows.jsonl"
    for value in (1, 2):
        for method in ("b", "a"):
            result_rows.add_row(file, {"method": method, "value": value}, ["method"])
    assert result_rows.read_rows(file) == [{"method": "a", "value": 2}, {"method": "b", "value": 2}]


def test_the_sources_of_a_row_are_its_pieces_and_a_change_of_one_makes_it_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = result_rows.sources(find_run("treerl", "sokoban"), "methods/treerl", "worlds/sokoban/preset")
    assert {f"src/bough/{name}.py" for name in ("methods/treerl", "worlds/sokoban/preset", "worlds/sokoban/env")} <= {
        *names
    }
    assert any("/credit/" in name for name in names)
    assert any("/explore/" in name for name in names)
    assert "src/bough/critics/progress_state.py" in result_rows.sources(find_run("spa_rl", "sokoban")), "what is built"
    monkeypatch.setattr(result_rows, "ROOT", tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        (tmp_path / "piece.py").write_text("a = 1\n")
        result_rows.subprocess.run([*git, *words], cwd=tmp_path, check=True)
    row = {"commit": result_rows.commit(), "sources": ["piece.py"]}
    assert not result_rows.changed(row)
    (tmp_path / "piece.py").write_text('"""A module."""\n\na = 1  # one\n')
    assert not result_rows.changed(row), "comments and docstrings are no code"
    (tmp_path / "piece.py").write_text("from x import b\n\na = 1\n")
    assert not result_rows.changed(row), "imports are no code"
    (tmp_path / "piece.py").write_text("a = 2\n")
    assert result_rows.changed(row)
    (tmp_path / "piece.py").write_text("a = 1\n")
    checked = "@dataclass(frozen=True)\nclass A:\n    n: int = 1\n    def __post_init__(self):\n        check(self)\n"
    bounded = "@piece\nclass A:\n    n: Annotated[int, AtLeast(1)] = 1\n"
    assert result_rows._code(checked) == result_rows._code(bounded), "types and checks of fields are no code"
    assert result_rows._code(bounded) != result_rows._code(bounded.replace("= 1", "= 2"))
    assert result_rows._code(bounded) != result_rows._code(bounded.replace("@piece", "@cached"))
    assert result_rows._code("a.pays") == result_rows._code("a.reward_ranges") != result_rows._code("a.pay")
    (tmp_path / "room").mkdir()
    result_rows.subprocess.run([*git, "mv", "piece.py", "room/part.py"], cwd=tmp_path, check=True)
    assert not result_rows.changed(row), "a moved file is the same file"
    (tmp_path / "room" / "part.py").write_text("a = 2\n")
    assert result_rows.changed(row)
    assert result_rows.changed({**row, "sources": ["gone.py"]})
    assert result_rows.changed({**row, "commit": "f" * 12})
