"""Published systems: the page is what the docstrings say, and its commands name what exists."""

import runpy
import shlex
import sys
from pathlib import Path

import pytest

from bough.cli.catalogue import entries
from bough.cli.find import find_run
from bough.cli.systems import TITLE, System, show_systems, systems
from bough.config import override
from bough.train import Run
from bough.train.check import check

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_docstrings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["systems.py"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    # It exits with a message when the page differs.
    runpy.run_path(str(ROOT / "scripts/systems.py"), run_name="__main__")


def test_every_method_search_and_recipe_with_a_paper_is_in_a_system() -> None:
    listed = {(entry.room, entry.name) for system in systems() for entry in system.entries}
    for entry in entries():
        if entry.room in ("methods", "search", "recipes") and "arXiv" in entry.summary:
            assert TITLE.match(entry.summary), f"{entry.name}: begin with `Name (arXiv 1234.56789): what it does.`"
            assert (entry.room, entry.name) in listed


def test_one_paper_is_one_system_with_all_that_belongs_to_it() -> None:
    by_paper = {system.paper: system for system in systems()}
    found = by_paper["2408.07199"]
    assert found.name == "Agent Q"
    assert {("methods", "agent_q"), ("search", "agent_q"), ("objective", "agent_q_dpo")} <= {
        (entry.room, entry.name) for entry in found.entries
    }
    assert "bough train agent_q --on sokoban name=agent_q_sokoban_2" in found.commands, "the recipe's has its name"
    assert by_paper["2510.24697"].name == "WebLeaper's filter", "a world that is like a paper's is not its system"
    assert "Agent Q" in show_systems()


@pytest.mark.parametrize("system", systems(), ids=lambda each: each.paper)
def test_its_commands_make_runs_that_can_start(system: System) -> None:
    assert system.commands
    trained: dict[str, Run] = {}
    for command in sorted(system.commands, key=lambda each: not each.startswith("bough train")):
        program, verb, target, *rest = shlex.split(command)
        assert program == "bough"
        if verb == "train":
            on = rest[rest.index("--on") + 1] if "--on" in rest else None
            changes = [each for each in rest if "=" in each]
            run = override(find_run(target, on), changes)
            check(run)
            assert run.name not in trained, "each command has a folder of its own"
            trained[run.name] = run
        else:
            assert verb == "search"
            name = target.removeprefix("runs/")
            override(trained.get(name) or find_run(name), [f"explorer={rest[0]}"])


@pytest.mark.parametrize("name", ["StarWM", "Tree-Planner"])
def test_searches_for_simulations_and_plans_have_a_model_that_writes_them(name: str) -> None:
    """A small policy that was trained on actions alone writes neither."""
    (system,) = [each for each in systems() if each.name == name]
    searches = [each for each in system.commands if each.startswith("bough search")]
    assert searches
    assert all("OpenAi(" in each or "models." in each for each in searches)
