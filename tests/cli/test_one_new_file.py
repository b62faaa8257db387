"""A new piece is one new file in the room of its kind; a world is one new folder. No other file is edited."""

import shutil
from pathlib import Path

from tests.talk import Bough

import bough
from bough.store import RunDirectory, read_metrics

FILES = {
    "worlds/pond/__init__.py": '"""A small lake."""\n',
    "worlds/pond/preset.py": '''
"""A small lake."""

from dataclasses import replace

from bough.train import World
from bough.worlds.frozenlake.preset import frozenlake


def pond() -> World:
    """A lake for tests."""
    return replace(frozenlake(), name="pond")
''',
    "methods/zigzag.py": '''
"""ZigZag."""

from bough.credit.halved import Halved
from bough.train import Run, World


def zigzag(world: World) -> Run:
    """ZigZag: half of each return."""
    return world.run(credit=Halved())
''',
    "searches/twice.py": '''
"""Twice."""

from bough.search import BestOf


def twice() -> BestOf:
    """Two paths."""
    return BestOf(n=2)
''',
    "credit/halved.py": '''
"""Half of the return."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class Halved:
    """Half of the return, for every token of a path."""

    compares: ClassVar[Literal["nothing"]] = "nothing"

    share: Annotated[float, Above(0)] = 0.5

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        view = path_view(rewarded)
        return spread_turns(view, self.share * (view.returns - 0.1)[view.path])
''',
    "reward/per_node.py": '''
"""A number for each action."""

from collections.abc import Mapping, Sequence

from bough.piece import piece
from bough.tree import Floats, Kind, RewardRange, Tree


@piece
class PerNode:
    """A number for each action."""

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        return {"node": RewardRange(low=0, high=0.25)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"node": 0.25 * (tree.kind == Kind.ACTION)} for tree in group]
''',
    "hooks/counter.py": '''
"""Counts trees."""

from collections.abc import Sequence

from bough.hooks import BatchHook, HookSetup
from bough.piece import piece
from bough.tree import Rewarded


@piece
class Counter:
    """Counts trees."""

    def build(self, setup: HookSetup) -> "CounterState":
        return CounterState(self, setup)


class CounterState(BatchHook[Counter]):
    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        self.metrics["counter/trees"] = float(len(rewarded))
        return list(rewarded)
''',
    "appraise/length.py": '''
"""The number of nodes, as a judge would give it."""

from collections.abc import Sequence

from bough.appraise import AskModels, Columns
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, Verdict


@piece
class Length:
    """The number of nodes of a tree."""

    @property
    def gives(self) -> frozenset[Need]:
        return frozenset({appraised("length")})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        return {"length": [{0: Entry(value=float(tree.nodes), verdict=Verdict.OK)} for tree in trees]}
''',
    "guard/right_alone.py": '''
"""Right alone."""

from collections.abc import Sequence

from bough.guard import Allow, Decision, Deny
from bough.piece import piece
from bough.tree import AgentAction, Message, Tool, action_text


@piece
class RightAlone:
    """Denies all other moves."""

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        return Allow() if action_text(action) == "right" else Deny(reason="not there")
''',
}
NAMES = {
    "worlds": "pond",
    "methods": "zigzag",
    "search": "twice",
    "credit": "Halved",
    "reward": "PerNode",
    "hooks": "Counter",
    "appraise": "Length",
    "guard": "RightAlone",
}
"""The name of each piece by the group of `bough list` in which it is."""


def test_a_new_piece_is_one_new_file(tmp_path: Path) -> None:
    package = tmp_path / "bough"
    # With its bytecode, which holds for the copies too; but for what another process is writing.
    shutil.copytree(Path(bough.__file__).parent, package, ignore=shutil.ignore_patterns("*.pyc.*", "*.xz"))
    for name, text in FILES.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    process = Bough(tmp_path)

    def run(*words: str) -> str:
        return process(*words, folder=tmp_path).fine()

    for room, name in NAMES.items():
        assert f"\n  {name} " in run("list", room), room
    assert "a number above 0" in run("list", "Halved")
    small = ("threads=1", "steps=1", "batch_tasks=2", "explorer.n=4", "warmup.epochs=1", "warmup.demonstrations=8")
    small += ("evaluation.tasks.count=2",)
    pieces = ("rewards=[EnvReward, PerNode]", "hooks=[Counter]", "appraisers=[Length]", "guard=RightAlone")
    run("train", "zigzag", "--on", "pond", "name=new", *small, *pieces)
    row = next(
        row for row in read_metrics(RunDirectory(path=tmp_path / "runs" / "new").metrics) if row["phase"] == "rl"
    )
    assert row["reward/node"] > 0
    assert row["counter/trees"] == 2
    assert row["judge/mean_length"] > 1
    assert row["train/denied"] > 0
    assert "twice" in run("search", "runs/new", "twice")
    process.close()
