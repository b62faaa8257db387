"""`check_env` passes good environments, and finds a planted fault of each kind."""

import gc
import json
from asyncio import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import bough
from bough.cli.app import app
from bough.cli.check_env import table
from bough.cli.find import find_env, find_world
from bough.config import ConfigError
from bough.env import Env, PlannerExecutor, Replay, State, Step
from bough.evaluate import CheckSizes, check_env
from bough.evaluate.envs import NAMES, Mark, resources
from bough.evaluate.envs.comparison import as_text, difference, state_record
from bough.tree import Task
from bough.usercode import load_module
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.shop import Shop
from bough.worlds.sokoban import Sokoban

FILE = Path(__file__).with_name("faulty_envs.py")
envs = load_module(FILE)
SMALL = CheckSizes(tasks=6, walks=6, steps=12, episodes=12, seconds=20, call_s=20)
SLOW = ("fresh processes", "memory", "open files", "processes left")
QUICK = tuple(name for name in NAMES if name not in SLOW)
PROCESSES = ("fresh processes",)


def failures(env: Env, only: tuple[str, ...] = QUICK, **changed: float) -> dict[str, str]:
    report = check_env(env, sizes=replace(SMALL, **changed), only=only)  # type: ignore[arg-type]
    return {check.name: f"{check.got}; {check.need}; {check.do}" for check in report.failures}


@pytest.mark.parametrize(
    "env",
    [
        envs.Line(),
        envs.Servant(),
        envs.Calls(),
        envs.Alive(),
        Replay(env=envs.Alive()),
        FrozenLake(slip=0.3, size=4),
        PlannerExecutor(env=Sokoban(), turns=1),
    ],
    ids=["line", "processes", "calls", "alive", "replay", "slippery", "seats"],
)
def test_a_good_environment_passes(env: Env) -> None:
    assert failures(env, only=tuple(name for name in NAMES if name != "fresh processes")) == {}


@pytest.mark.parametrize("env", [envs.Line(), envs.Alive()], ids=["line", "alive"])
def test_a_good_environment_passes_in_fresh_processes(env: Env) -> None:
    assert failures(env, only=PROCESSES) == {}


BREAKS_OTHERS = {"random tasks", "random steps", "in place", "replay", "nan reward", "number", "unpicklable", "memory"}
"""Faults that break what other checks rest on."""
BESIDE = {
    "raises on text": {"no step counter in keys"},
    "constant key": {"no step counter in keys"},
    "wrong oracle": {"oracle after random actions"},
}


@pytest.mark.parametrize(("fault", "check"), envs.faults().items())
def test_a_planted_fault_is_found_by_its_own_check(fault: str, check: str) -> None:
    late = {"call_s": 0.3} if fault == "hangs on text" else {}
    found = failures(envs.Line(fault=fault), only=(check,) if check in SLOW else (*QUICK, check), **late)
    assert check in found
    assert all(text.strip("; ") for text in found.values())
    if fault not in BREAKS_OTHERS:
        assert {*found} - BESIDE.get(fault, set()) == {check}, found


@pytest.mark.parametrize("fault", ["raises", "valid", "no message for a bad call"])
def test_faults_of_calls_are_found(fault: str) -> None:
    assert "garbage calls" in failures(envs.Calls(fault=fault))


@pytest.mark.parametrize("env", [envs.Alive(drift=True), Replay(env=envs.Alive(drift=True))], ids=["alive", "replay"])
def test_a_replay_that_differs_is_found(env: Env) -> None:
    assert {"determinism", "branching"} <= {*failures(env)}


def test_an_environment_that_cannot_be_pickled_is_found() -> None:
    found = failures(envs.Line(unsendable=lambda: 0), only=PROCESSES)
    assert "cannot be pickled" in found["fresh processes"]


@pytest.mark.parametrize("detached", [False, True])
def test_processes_that_stay_are_found(detached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A detached process has no parent; a variable of its environment marks it."""
    monkeypatch.setattr(resources, "PATIENCE_S", 1.0)
    env = envs.Servant(detached=detached)
    if not detached:
        object.__setattr__(env, "children", _Immortal(env.children))
    found = failures(env, only=("processes left",))
    assert "after close()" in found["processes left"]
    for child in [] if detached else list(env.children):
        child.kill()


class _Immortal(list):  # type: ignore[type-arg]
    """A list of processes that `close` does not find."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(())

    def clear(self) -> None:
        pass


def test_an_environment_without_tasks_has_one_failure() -> None:
    report = check_env(envs.Line(fault="no tasks"))
    assert [check.name for check in report.checks] == ["instructions", "tasks"]
    assert "got no data" in report["tasks"].got
    with pytest.raises(KeyError, match="oracle"):
        report["oracle"]


def test_the_command_prints_a_table_writes_a_report_and_exits_with_the_result(tmp_path: Path) -> None:
    small = ["--episodes", "12", "--walks", "3", "--tasks", "3", "--seed", "1", "--only", "splits", "--only", "memory"]
    out = tmp_path / "report.json"
    good = CliRunner().invoke(app, ["check-env", f"{FILE}:Line", *small, "--out", str(out)])
    assert good.exit_code == 0, good.output
    assert f"{FILE}:Line: 2 checks passed, 0 failed" in good.output, "on one line, whatever the width of the terminal"
    written = json.loads(out.read_text())
    assert written["passed"]
    assert [check["name"] for check in written["checks"]] == ["splits", "memory"]
    assert written["checks"][1]["numbers"]["episodes"] == 12
    bad = CliRunner().invoke(app, ["check-env", f"{FILE}:Line(fault='same ids')", *small])
    assert bad.exit_code == 1
    assert "by bough.env.splits.split_of" in " ".join(bad.output.split())
    assert f"error: {FILE}:Line(fault='same ids'): 1 of 2 checks failed: splits" in bad.output


def test_a_world_whose_limit_of_turns_ends_most_solutions_fails() -> None:
    world = find_world("shop")
    short = world.replace(limits=replace(world.limits, turns=1))
    sizes, only = CheckSizes(tasks=3, walks=2, episodes=8), ["oracle"]
    assert bough.check_env(world, sizes, only).passed
    (check,) = bough.check_env(short, sizes, only).failures
    assert "solutions within limits.turns=1; they take 5.0 turns on average" in check.got


def test_the_title_of_the_table_has_the_brackets_of_a_list() -> None:
    console = Console(record=True, width=100)
    console.print(table(check_env(Shop(), only=["instructions"], name="Shop(kinds=[red,blue])")))
    assert "Shop(kinds=[red,blue]) (branching: copy)" in console.export_text()


def test_a_failure_that_the_environment_declares_is_by_design() -> None:
    env = envs.Declared(fault="constant key", deviations={"state keys": "states recur", "oracle": "it may fail"})
    report = check_env(env, sizes=SMALL, only=["state keys", "oracle"])
    assert (report["state keys"].mark, report["oracle"].mark) == (Mark.BY_DESIGN, Mark.PASS)
    assert "states recur" in report["state keys"].figure
    assert report.passed
    assert check_env(Replay(env=env), sizes=SMALL, only=["state keys"]).passed, "also of a wrapped environment"
    assert not check_env(envs.Line(fault="constant key"), sizes=SMALL, only=["state keys"]).passed
    with pytest.raises(ValueError, match=r"Declared\.deviations: got 'keys'; need some of"):
        check_env(envs.Declared(fault="constant key", deviations={"keys": "no check"}))
    for wrong in ("", "  ", None, 3):
        with pytest.raises(ValueError, match=r"Declared\.deviations: got the reason .* for 'oracle'; need a text"):
            check_env(envs.Declared(deviations={"oracle": wrong}))  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"Declared\.deviations: got a list; need a mapping of checks to reasons"):
        check_env(envs.Declared(deviations=["oracle"]))  # type: ignore[arg-type]


def test_a_world_an_environment_and_a_file_are_found(tmp_path: Path) -> None:
    assert isinstance(find_env("shop"), Shop)
    assert find_env("FrozenLake(slip=0.25)") == FrozenLake(slip=0.25)
    assert find_env(f"{FILE}:Line(fault=memory)").fault == "memory"  # type: ignore[attr-defined]
    (tmp_path / "w.py").write_text("from bough.worlds.shop.preset import shop\n\ndef world():\n    return shop()\n")
    assert isinstance(find_env(f"{tmp_path}/w.py"), Shop)
    for wrong in ("shp", "Shp", f"{FILE}:faults", "Shop(wanted=99)"):
        with pytest.raises(ConfigError):
            find_env(wrong)
    assert check_env(Shop(), only=["oracle"])["oracle"].mark is Mark.PASS
    for env in ("shop", find_world("shop"), Shop()):
        assert bough.check_env(env, only=["instructions"]).passed
    with pytest.raises(ValueError, match="need some of"):
        check_env(Shop(), only=["oracles"])


def test_the_example_of_tools_passes() -> None:
    """Tools are described, so the instructions may be empty; its oracle gives up a state that it cannot repair."""
    example = Path(__file__).parents[2] / "examples" / "tools_env.py"
    sizes = CheckSizes(tasks=2, episodes=8, walks=4, steps=4)
    report = bough.check_env(f"{example}:world", sizes, ["instructions", "oracle after random actions"])
    assert report.passed, report.failures


def test_a_chosen_check_that_cannot_run_says_why() -> None:
    class Broken(FrozenLake):
        def start(self, task: Task) -> State:
            del task
            raise RuntimeError("no episode begins")

    assert any("no episode begins" in text for text in failures(Broken(), only=("oracle",)).values())


def test_a_cancelled_client_is_a_fault_of_the_environment() -> None:
    class Cancelled(FrozenLake):
        def step(self, state: State, action: str) -> Step:
            del state, action
            raise CancelledError

    assert any("raised CancelledError" in text for text in failures(Cancelled(), only=("oracle",)).values())


def test_what_a_program_froze_stays_frozen() -> None:
    try:
        for frozen in (False, True):
            (gc.freeze if frozen else gc.unfreeze)()
            with resources.collecting_new_objects():
                assert gc.get_freeze_count() > 0
            assert (gc.get_freeze_count() > 0) == frozen
    finally:
        gc.freeze()


def test_a_long_list_of_admissible_actions_is_recorded_by_its_hash() -> None:
    many = tuple(map(str, range(10**5)))
    one, other, few = (
        state_record(State(observation="", key="", value=None, admissible=each))
        for each in (many, (*many[:-1], "x"), many[:1000])
    )
    assert len(as_text(one)) < 1000
    assert "100,000 actions" in difference(one, other)
    assert few["admissible"] == [*many[:1000]]
