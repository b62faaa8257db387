"""One explorer before the first update, another after it."""

import asyncio

import pytest
from tests.explore.stage import World, runner

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import BeforeUpdates, Chains, FullTree
from bough.tree import Task, counted


@pytest.mark.parametrize(("version", "paths"), [(0, 4), (1, 3)])
def test_the_version_of_the_policy_decides(version: int, paths: int) -> None:
    engine = Scripted(script=lambda _: (ord("b"),))
    engine.load_weights({}, version)
    how = BeforeUpdates(first=FullTree(width=2, depth=2), then=Chains(n=3))
    place = runner(engine, InProcessHost(env=World(length=2)))
    tree = asyncio.run(place.run(how, [Task(id="t")], seed=0)).trees[0]
    assert len(counted(tree)) == paths
