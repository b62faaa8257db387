"""`import bough` as a notebook uses it: every call is made while an event loop runs in the calling thread."""

import asyncio
import inspect
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from tests import small
from tests.forks import script

import bough
from bough.config import ConfigError
from bough.config.fields import short_names
from bough.reward import EnvReward
from bough.store import StoreError, owned
from bough.train import Run, Warmup, World
from bough.train.run import RunFields, WorldFields
from bough.tree import Floats, Tree

ARMED: list[bool] = []
"""Not empty when the next batch is to be interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PressesCtrlC:
    """Pays nothing; sends SIGINT to this process when armed."""

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        if ARMED:
            ARMED.pop()
            os.kill(os.getpid(), signal.SIGINT)
        return [{"nothing": np.zeros(tree.nodes)} for tree in group]


def tiny() -> Run:
    return small.run().replace(
        name="tiny", steps=3, warmup=Warmup(demonstrations=4), rewards=(EnvReward(), PressesCtrlC())
    )


CHANGES = ["warmup.epochs=1", "evaluation.tasks.count=2", "health.dead_batches=100"]


def _cell(work: Callable[[], Any]) -> Any:
    """Run a cell as a kernel does: from a loop that runs in the main thread."""

    async def cell() -> Any:
        return work()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def result(folder: Path) -> bough.Result:
    return _cell(lambda: bough.train(tiny(), CHANGES, out=folder, name="cell"))


def _state(result: bough.Result) -> dict[str, torch.Tensor]:
    return result.policy.state()


def _assert_equal(one: bough.Result, other: bough.Result) -> None:
    mine, others = _state(one), _state(other)
    assert mine.keys() == others.keys()
    assert all(torch.equal(value, others[name]) for name, value in mine.items())
    assert one.heldout == other.heldout
    assert [row.get("loss/total") for row in one.metrics] == [row.get("loss/total") for row in other.metrics]


def test_a_run_in_a_running_loop_equals_one_outside(result: bough.Result, folder: Path) -> None:
    assert result.directory == folder / "cell"
    _assert_equal(result, bough.train(tiny(), CHANGES, out=folder, name="script"))


def test_a_result_has_metrics_success_report_and_run(result: bough.Result) -> None:
    assert result.metrics.column("step") == [1, 2, 3, 4]
    assert len(result.heldout[4]) == 2
    assert result.success == sum(result.heldout[4].values()) / 2
    assert result.run.name == "cell"
    assert "<html" in Path(result.report).read_text(encoding="utf-8")
    assert str(result).startswith(f"{result.directory}: Held-out success ")
    assert result._repr_html_().startswith(f"<p>{result.directory}: Held-out success ")
    assert "4 rows" in result._repr_html_()


def test_load_evaluate_and_search_work_in_a_running_loop(result: bough.Result, folder: Path) -> None:
    loaded = bough.load(str(folder / "cell"))
    assert loaded == result
    evaluation = _cell(lambda: bough.evaluate(loaded, ["evaluation.temperature=0"]))
    assert evaluation.step == 4
    assert len(evaluation.score.successes) == 2
    assert str(evaluation) in evaluation._repr_html_()
    assert "Tree" not in repr(evaluation)
    found = _cell(lambda: bough.search(folder / "cell", "Chains(n=2)", out=folder / "found"))
    assert len(found.trees) == 2
    assert "Tree" not in repr(found)
    assert (folder / "found" / "results.json").is_file()


def test_an_interrupted_run_is_resumed_as_if_it_had_not_been(result: bough.Result, folder: Path) -> None:
    ARMED.append(True)
    with pytest.raises(KeyboardInterrupt, match=r"bough resume .*stopped"):
        _cell(lambda: bough.train(tiny(), CHANGES, out=folder, name="stopped"))
    stopped = bough.load(folder / "stopped")
    assert '"state": "stopped", "why": "by Ctrl-C"' in Path(stopped.report).read_text(encoding="utf-8")
    assert len(stopped.metrics) < 4
    _assert_equal(_cell(lambda: bough.resume(stopped)), result)


def test_mistakes_are_reported_as_on_the_command_line(result: bough.Result, folder: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'grpo_frozenlake'"):
        bough.train("grpo_frozenlak")
    with pytest.raises(ConfigError, match="did you mean 'learning_rate'"):
        bough.train("grpo_frozenlake", ["optimizer.learning_rat=1"])
    with pytest.raises(StoreError, match="a folder that does not exist"):
        bough.load(folder / "nowhere")
    with pytest.raises(StoreError, match="exists and holds a run"):
        bough.train(tiny(), out=folder, name=result.run.name)
    with pytest.raises(AttributeError, match="module 'bough' has no attribute 'tarin'"):
        bough.tarin  # noqa: B018


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"steps": "two"}, "steps: got 'two'; need a valid integer"),
        ({"stepz": 2}, "stepz: unknown name 'stepz'; did you mean 'steps'?"),
        ({"learning_rate": 1e-3}, "did you mean 'optimizer.learning_rate' or 'warmup.learning_rate'?"),
        ({"steps": -1}, "Schedule.steps: got -1; need at least 0"),
        ({"warmup": 1}, "World.warmup: got int; need a Warmup"),
        ({"health": 1}, "Run.health: got int; need a Health"),
        ({"credit": EnvReward()}, "Method.credit: got EnvReward"),
    ],
)
def test_a_keyword_is_checked_as_a_change_is(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        bough.train("grpo", **fields)
    with pytest.raises(ConfigError, match=re.escape(told)):
        small.run().replace(**fields)


def test_a_list_of_pieces_is_a_tuple() -> None:
    assert small.run().replace(rewards=[EnvReward()]).world.rewards == (EnvReward(),)


def test_a_function_is_a_method(folder: Path) -> None:
    def halved(world: World) -> Run:
        return world.run(steps=world.schedule.steps // 2)

    result = bough.train(halved, CHANGES, on=small.world(), out=folder)
    assert result.run.name == "halved_small"
    assert result.run.world.schedule.steps == 2
    with pytest.raises(ConfigError, match=r"nothing\(\) returned NoneType; need a bough.train.Run"):
        bough.train(nothing)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="method: got 3; need a Run, a method's name, or a function"):
        bough.train(3)  # pyright: ignore[reportArgumentType]


def nothing(_: World) -> None:
    """A function that is no method."""


def test_nothing_of_a_run_that_has_not_begun_is_made_up(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "config.json").write_text("{}")
    empty = bough.load(folder / "empty")
    assert empty.metrics == []
    assert empty.success is None
    with pytest.raises(StoreError, match="got settings of no run"):
        _ = empty.report
    with pytest.raises(StoreError, match="got no whole checkpoint"):
        _ = empty.policy


def test_a_report_is_written_before_the_end_of_a_run_and_not_after(result: bough.Result, folder: Path) -> None:
    copy = bough.load(shutil.copytree(result.directory, folder / "copied"))
    ended = copy.report.path.read_text()
    (copy.directory / "status.json").write_text('{"state": "training", "why": "", "at": ""}')
    with owned(copy.directory / "run.lock"):
        assert "trains it" in copy.report.path.read_text()
    copy.report.path.unlink()
    assert "the process ended without a word" in copy.report.path.read_text()
    copy.report.path.write_text(ended)
    assert copy.report.path.read_text() == ended


def test_a_damaged_newest_checkpoint_is_warned_about(result: bough.Result) -> None:
    newest = max((result.directory / "checkpoints").iterdir())
    (newest / "state.json").write_text("{")
    with pytest.warns(UserWarning, match="the policy is that of step 3"):
        _ = bough.load(result.directory).policy


ORDERS = """
import sys

for order in (
    "import bough; function = bough.train; from bough.train import Run",
    "from bough.train import Run; import bough; function = bough.train",
    "from bough import train as function; from bough.train import Run; import bough",
    "import bough; bough.load; bough.evaluate; function = bough.train; from bough.train import Run",
):
    for name in [name for name in sys.modules if name.partition(".")[0] == "bough"]:
        del sys.modules[name]
    exec(order)
    assert bough.train is function and function.Run is Run, order
    assert callable(function) and callable(bough.evaluate), order
"""


def test_train_is_a_package_and_a_function_in_any_order() -> None:
    script(ORDERS).wait().fine()


def test_the_packages_have_the_signatures_of_their_functions() -> None:
    assert list(inspect.signature(bough.train).parameters) == ["run", "changes", "on", "policy", "out", "fields"]
    assert list(inspect.signature(bough.evaluate).parameters) == [
        "run",
        "changes",
        "on",
        "policy",
        "step",
        "shots",
        "accept_changes",
    ]


@pytest.mark.parametrize(("kind", "keywords"), [(Run, RunFields), (World, WorldFields)])
def test_every_field_is_a_typed_keyword(kind: type, keywords: type) -> None:
    assert {*get_type_hints(keywords)} == {*short_names(kind)}
