"""The scripts of bench/ and scripts/: each starts, the quick ones run, and what the slow ones train can be built."""

from pathlib import Path

import pytest
from tests.bench.in_process import execute
from tests.missing import need

import compare
import search
import where_methods_part
from bough.cli.find import find_run
from bough.config import override
from bough.train.check import check

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(file for room in ("bench", "scripts") for file in (ROOT / room).glob("*.py"))
WITH_OPTIONS = [file for file in SCRIPTS if "ArgumentParser" in file.read_text() and "__main__" in file.read_text()]
SMALLEST = {
    "credit": "--groups 2 --rounds 1 --rules Grpo",
    "rewards": "--groups 2 --rounds 1 --rewards Success",
    "env_table": "shop --tasks 8 --episodes 8 --steps 5 --dry",
    "turn_overhead": "--trees 1 --rounds 1",
    "laboratory": "--groups 4 --rules Grpo --worlds chain",
    "serve": "grammar --quick",
    "trees": "--size tiny --rounds 1 --shapes chains",
}
"""By script, options with which it is over in seconds."""
SHORT = "steps=1 batch_tasks=2 warmup.epochs=1 warmup.demonstrations=4 evaluation.tasks.count=2 threads=1"
SLOW = {
    "ablation": "--rounds 1 --layers 1",
    "chaos": "--strikes 1 --steps 2 --every-s .1",
    "cluster_plans": "--steps 1",
    "compare": f"credit {SHORT} --seeds 1 --methods GRPO --on frozenlake --recipe grpo",
    "generation": "--size tiny --rounds 1 --threads 1",
    "judges": "--tasks 2 --rounds 1",
    "logprob": "--vocabularies 300 --rounds 1",
    "in_flight": "--trees 1 --rounds 1",
    "overlap": "--only growth --trees 1 --rounds 1",
    "plan": "--rounds 1 --step-s .001",
    "search": f"grpo_sokoban {SHORT} --seeds 1 --tasks 2 --budgets 1 --critic-steps 1 --searches beam",
    "smollm2": "--rounds 1 --layers 1 --threads 1",
    "stages": f"{SHORT} --recipes grpo_sokoban --steps 1",
    "update": "--rounds 1 --threads 1",
}
"""By script, options with which it is over in a minute or two of one core; `make test-bench` runs them."""


@pytest.mark.parametrize("file", WITH_OPTIONS, ids=lambda file: file.stem)
def test_a_script_starts_and_shows_its_options(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(file, ["--help"], monkeypatch)
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("name", SMALLEST)
def test_a_quick_script_prints_its_table(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(ROOT / "bench" / f"{name}.py", SMALLEST[name].split(), monkeypatch)
    assert any(line.startswith("|") for line in capsys.readouterr().out.splitlines())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_script_ends_well(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("time")
    monkeypatch.chdir(tmp_path)
    execute(ROOT / "bench" / f"{name}.py", SLOW[name].split(), monkeypatch)


@pytest.mark.parametrize("rule", where_methods_part.RULES)
def test_the_quiz_trains_with_every_rule(rule: str) -> None:
    base = where_methods_part._base(where_methods_part.Cell(), 0, "quiz")
    check(where_methods_part.RULES[rule](base))


@pytest.mark.parametrize(
    ("what", "method"), [(what, method) for what, methods in compare.METHODS.items() for method in methods]
)
def test_a_comparison_trains_with_every_method(what: str, method: str) -> None:
    base = find_run("grpo", "search_long") if what == "rewards" else find_run("grpo_sokoban")
    check(compare.METHODS[what][method](base))


@pytest.mark.parametrize("name", search.SEARCHES)
def test_a_comparison_of_searches_has_every_search(name: str) -> None:
    run = find_run("ppo", "sokoban")
    check(override(run, [f"explorer={search.SEARCHES[name]}"]))
