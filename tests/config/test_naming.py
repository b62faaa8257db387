"""Pieces by name on the command line: of Bough, and of the user's file."""

import json
import re
from pathlib import Path

import pytest
from tests.small import run as small

from bough.cli.catalogue import PIECES
from bough.config import ConfigError, dump, load, override
from bough.config.naming import ROOMS, packages
from bough.credit import Grpo, rloo
from bough.reward import EnvReward
from bough.search import ExecuteAndEvaluate, Search
from bough.searches.mcts import mcts
from bough.train import Run
from bough.usercode import load_module

MINE = """
from collections.abc import Sequence
from dataclasses import dataclass

from bough.credit import Grpo
from bough.search import SearchNode, SearchTree
from bough.tree import Credited, Rewarded


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTurns:
    fade: float = 0.5
    note: str = ""

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return Grpo()(rewarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brevity:
    per_token: float = 0.001

    def __call__(self, group):
        return [{} for _ in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class MyValue:
    at: float = 0.5

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        return self.at


def fading(fade: float) -> FirstTurns:
    return FirstTurns(fade=fade / 2)


def number(width):
    return width


class Plain:
    pass
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_a_piece_of_a_file(mine: Path) -> None:
    module = load_module(mine)
    run = override(small(), ["credit=mine.py:FirstTurns(fade=0.8)"])
    assert run.method.credit == module.FirstTurns(fade=0.8)
    assert override(small(), [f"credit={mine}:FirstTurns"]).method.credit == module.FirstTurns()
    assert override(small(), ["credit=mine.py:fading(fade=0.8)"]).method.credit == module.FirstTurns(fade=0.4)
    assert override(run, ["credit.fade=0.1"]).method.credit == module.FirstTurns(fade=0.1)
    assert load(json.loads(json.dumps(dump(run)))) == run


def test_a_piece_of_a_file_inside_others(mine: Path) -> None:
    module = load_module(mine)
    rewards = override(small(), ["rewards=[EnvReward, mine.py:Brevity(per_token=.01)]"]).world.rewards
    assert rewards == (EnvReward(), module.Brevity(per_token=0.01))
    assert override(small(), ["rewards.0=mine.py:Brevity"]).world.rewards == (module.Brevity(),)
    assert (
        override(small(), ["explorer=mcts()", "explorer.evaluate=mine.py:MyValue"]).method.explorer.evaluate.at == 0.5
    )
    searched: Search = override(
        small(),
        ["explorer=Search(select=Best(by=NodeValue), rate=ExecuteAndEvaluate(evaluate=mine.py:MyValue(at=.1)))"],
    ).method.explorer
    assert searched.rate == ExecuteAndEvaluate(evaluate=module.MyValue(at=0.1))


@pytest.mark.parametrize("note", ["a, b", "a) and (b", "fade=1", "it's", 'say "x, y"', "[", "a\\b", "don't"])
def test_quoted_text_is_not_split(mine: Path, note: str) -> None:
    run: Run = override(small(), [f"credit=mine.py:FirstTurns(note={note!r}, fade=1)"])
    assert run.method.credit == load_module(mine).FirstTurns(note=note, fade=1.0)


def test_an_apostrophe_inside_a_text_is_no_quote(mine: Path) -> None:
    run: Run = override(small(), ["credit=mine.py:FirstTurns(note=don't, fade=1)"])
    assert run.method.credit == load_module(mine).FirstTurns(note="don't", fade=1.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("credit=gone.py:FirstTurns", "credit: there is no file gone.py; need path/to/file.py:name"),
        (f"credit={'x' * 300}.py:FirstTurns", f"credit: there is no file {'x' * 300}.py; need"),
        ("credit=mine.py:FirstTurn", "credit: unknown name 'FirstTurn'; did you mean 'FirstTurns'? in mine.py"),
        (
            "credit=mine.py:zzz",
            "credit: unknown name 'zzz'; need one of Brevity, FirstTurns, fading, number in mine.py",
        ),
        (
            "rewards=[EnvReward, mine.py:FirstTurns]",
            "rewards.1: got FirstTurns, whose __call__ takes (rewarded: Sequence[Rewarded]); need a Reward, whose "
            "__call__ takes (group: Sequence[Tree]); offered in mine.py: Brevity, number",
        ),
        ("rewards=[mine.py:fading(fade=1)]", "rewards.0: got FirstTurns, whose __call__ takes"),
        ("credit=mine.py:Plain", "credit: got Plain in mine.py; need a dataclass, or a function that makes one"),
        ("credit=mine.py:number(width=3)", "credit: got 3; need a piece"),
        ("credit=mine.py:fading", "credit: got fading without fade; need fading(fade=...)"),
        ("credit=mine.py:fading(fadde=1)", "credit.fadde: unknown name 'fadde'; did you mean 'fade'? in fading"),
        ("credit=mine.py:FirstTurns(fade=(1)", "credit: got 'fade=(1' without ')'; close it, or put text into quotes"),
        ("credit=mine.py:FirstTurns(note='a)", 'credit: got "note=\'a" without "\'"; close it'),
        ("credit=mine.py:FirstTurns(fade=1])", "credit: got 'fade=1]' with a stray ']'; remove it"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_a_file_does_not_have(change: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        override(small(), [change])


def test_a_file_that_cannot_be_imported(mine: Path) -> None:
    mine.write_text("def run(:")
    with pytest.raises(ConfigError, match=r"^credit: mine.py cannot be imported: .*mine.py, line 1"):
        override(small(), ["credit=mine.py:FirstTurns"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("explorer=LabelParser", "explorer: got LabelParser, whose __call__ takes (text: str); need an Explorer"),
        ("explorer=Uct", "explorer: got Uct, whose __call__ takes (node: SearchNode); need an Explorer"),
        ("policy=ValueHead", "policy: got ValueHead, whose build takes (width: int); need a PolicyRecipe"),
        ("context=Plain", "context: got Plain, which lacks extend; need a Context; offered: Full, Planned, Window"),
        (
            "credit=mcts",
            "credit: got Search, whose __call__ takes async (rollout: Rollout) and returns None; need a Credit",
        ),
        ("rewards.0=Grpo", "rewards.0: got Grpo, whose __call__ takes (rewarded: Sequence[Rewarded]); need a Reward"),
        ("rewards=EnvReward", "rewards: got EnvReward; need several pieces, as in [Name"),
        ("credit=[Grpo]", "credit.0: "),
        ("explorer=mtcs()", "explorer: unknown name 'mtcs'; did you mean 'mcts'?"),
        ("credit=GRPO", "credit: unknown name 'GRPO'; did you mean 'Grpo'?"),
        ("credit=Rlo", "credit: unknown name 'Rlo'; did you mean 'rloo'?"),
        ("optimizer.Learning_Rat=1", "optimizer.Learning_Rat: unknown name 'Learning_Rat'; did you mean"),
    ],
)
def test_names_of_bough_that_do_not_fit(change: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        override(small(), [change])


def test_a_factory_takes_arguments() -> None:
    assert override(small(), ["explorer=mcts(width=2)"]).method.explorer == mcts(width=2)
    assert override(small(), ["credit=rloo"]).method.credit == rloo()


def test_a_piece_of_the_wrong_kind_in_a_run_or_its_file() -> None:
    with pytest.raises(ValueError, match=r"World.rewards.0: got Grpo, whose __call__ takes .*; need a Reward"):
        small().replace(rewards=(Grpo(),))  # type: ignore[arg-type]
    data = dump(small())
    data["world"]["rewards"] = [data["method"]["credit"]]
    with pytest.raises(ConfigError, match=r"^world.rewards.0: got Grpo, whose __call__ takes .*; need a Reward"):
        load(data)
    data = dump(small())
    data["world"]["schedule"]["steps"] = data["method"]["credit"]
    with pytest.raises(ConfigError, match=r"^world.schedule.steps: got Grpo\(.*; need a valid integer"):
        load(data)


def test_every_listed_package_is_known_by_name() -> None:
    listed = {package for _, several, _ in PIECES.values() for package in several}
    assert listed <= {package for room in ROOMS for package in packages(room)}
