"""Search traces: a searched tree as text before the actions of its best path, and hinted answers without the hint."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import Letters, World, grow, runner
from tests.search.talk import talk

from bough.batch import pack_demonstrations
from bough.context import Full, Plain, Tagged
from bough.credit import Filtered
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.methods.ats import ats
from bough.rewrite import SearchTraces
from bough.rewrite.teacher_paths import teacher_paths
from bough.rollout import Limits, PolicyFormat
from bough.search import Admissible, Level, Search
from bough.searches.ats import ats as hinted
from bough.train.check import check
from bough.tree import Kind, Rewarded, Source, Tree
from bough.worlds.frozenlake.preset import frozenlake

FORMAT = PolicyFormat(renderer=Letters(), context=Full(), parser=Tagged())


def searched(*, length: int = 2) -> Rewarded:
    """A full tree of the letters a and b; only a's solve the task."""
    engine = Scripted(script=lambda request: tuple(map(ord, random.Random(request.seed).choice("ab"))))
    how = Search(select=Level(), expand=Admissible(), eager=True, stop_value=None)

    class Listed(World):
        def start(self, task):  # type: ignore[no-untyped-def]
            return replace(super().start(task), admissible=("a", "b"))

        def step(self, state, action):  # type: ignore[no-untyped-def]
            done = super().step(state, action)
            return replace(done, state=replace(done.state, admissible=("a", "b")))

    (tree,) = grow(runner(engine, InProcessHost(env=Listed(length=length))), how).trees
    return Rewarded(tree=tree, channels={"won": np.zeros(tree.nodes)})


def spoken(tree: Tree) -> list[str]:
    return [Letters().text(tree.tokens_of(node)) for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]


def test_failed_actions_come_before_those_of_the_path() -> None:
    (made,) = SearchTraces()([searched()], FORMAT)
    assert spoken(made.tree) == [
        "b: b\n b: bb\n back\n a: ba\n back\nback\na: a\n b: ab\n back\n a: solved\n<action>a</action>",
        "b: ab\nback\na: solved\n<action>a</action>",
    ]
    acts = made.tree.kind == Kind.ACTION
    assert set(made.tree.source[acts].tolist()) == {Source.TEACHER}
    assert Tagged()(spoken(made.tree)[0]).action == "a"
    batch = pack_demonstrations([made.tree])
    assert int((batch.positive > 0).sum()) == sum(len(text) + 1 for text in spoken(made.tree)), "the traces are trained"


def test_long_traces_lose_their_first_lines_and_long_observations_their_ends() -> None:
    (made,) = SearchTraces(max_lines=2, characters=1)([searched()], FORMAT)
    assert spoken(made.tree)[0] == " back\n a: solved\n<action>a</action>"
    assert not SearchTraces()([searched()], replace(FORMAT, max_tokens=20)), "too long for the model"


def test_a_tree_without_success_gives_nothing_and_a_parser_must_find_the_action() -> None:
    lost = searched()
    tree = replace(lost.tree, success=np.zeros_like(lost.tree.success))
    assert not SearchTraces()([replace(lost, tree=tree)], FORMAT)
    with pytest.raises(ValueError, match=r"parser=Plain: got the action 'b: b'"):
        SearchTraces()([searched()], replace(FORMAT, parser=Plain()))
    with pytest.raises(ValueError, match=r"SearchTraces\.max_lines: got 0; need at least 1"):
        SearchTraces(max_lines=0)


def test_hinted_answers_are_imitated_without_the_hint() -> None:
    """The policy solves the task with the hint alone; the demonstration has its answers after the plain prompt."""
    engine = talk(lambda read, _: "a" if "write a search" in read else "b", lambda _: "")
    place = runner(engine, InProcessHost(env=World(length=2)), limits=Limits(turns=2))
    (tree,) = grow(place, hinted()).trees
    rewarded = Rewarded(tree=tree, channels={"won": np.zeros(tree.nodes)})
    (shown,) = teacher_paths(Filtered()([rewarded]))
    assert spoken(shown) == ["a", "a"]
    assert "search" not in Letters().text(shown.token.tolist())
    assert (pack_demonstrations([shown]).positive > 0).any()


def test_the_method_takes_either_source() -> None:
    trees, hints = ats(frozenlake()), ats(frozenlake(), source="hints")
    assert isinstance(trees.method.demonstrations.revise, SearchTraces)
    assert not trees.method.demonstrations.from_trees
    assert hints.method.demonstrations.from_trees
    assert hints.method.explorer == hinted()
    for run in (trees, hints):
        check(run)
        assert isinstance(run.world.parser, Tagged)
