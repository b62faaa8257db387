"""Kinds of steps: sampled, selected by a critic, and valued."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import runner, says
from tests.search.game import Game, search
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import KindValues
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import SampleKinds
from bough.searches.cr_planner import cr_planner
from bough.searches.mcts import mcts
from bough.tree import Kind, Outcome, Source, Task, path_view

LETTERS = Scripted(script=says(lambda luck: luck.choice("xy")))


def test_the_critic_selects_the_kind_and_then_the_step() -> None:
    """It likes the kind `b` after its text, and the step `bx` at its end; one call each for a state."""
    texts: list[list[str]] = []

    async def critic(some: Sequence[tuple[int, ...]]) -> list[float]:
        last = ["".join(map(chr, text)).rsplit("}", 1)[1] for text in some]
        texts.append(last)
        return [{"b": 0.9, "bx": 0.8}.get(each, 0.1) for each in last]

    place = runner(LETTERS, InProcessHost(env=Game(depth=4, letters=("ax", "ay", "bx", "by"))))  # type: ignore[arg-type]
    place = replace(place, agent=replace(place.agent, critic=critic))
    (tree,) = asyncio.run(place.run(cr_planner(kinds=("a", "b"), samples=8), [Task(id="t")], seed=0)).trees
    (end,) = np.flatnonzero(tree.answer).tolist()
    assert tree.info[end]["text"] == "bxbx"
    assert [sorted(some) for some in texts] == [["a", "b"], ["bx", "by"]] * 2
    assert tree.counts.turns == 2, "only what is selected is executed"
    assert tree.counts.calls == 2 * (1 + 8 + 1)


def test_all_kinds_are_sampled_without_a_critic() -> None:
    how = replace(mcts(simulations=1), expand=SampleKinds(kinds=("a", "b"), width=6))
    known, _ = search(how, Game(depth=6), engine=LETTERS)
    assert {child.action for child in known.root.children} == {"ax", "ay", "bx", "by"}


def test_a_kind_is_worth_the_mean_of_its_steps_by_visits() -> None:
    tree = rewarded(
        build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION, tokens=(7,), source=Source.FORCED),
            N(parent=1, kind=ACTION, tokens=(3, 4), value=0.8, visits=3),
            N(parent=2, kind=OBSERVATION, outcome=Outcome.TERMINATED),
            N(parent=1, kind=ACTION, tokens=(5, 4), value=0.2, visits=1),
            N(parent=4, kind=OBSERVATION, outcome=Outcome.TERMINATED),
            N(parent=0, kind=ACTION, tokens=(6, 4), value=0.1, visits=1),
            N(parent=6, kind=OBSERVATION, outcome=Outcome.TERMINATED),
        )
    )
    (credited,) = KindValues()([tree])
    target = credited.value_targets["value"]
    first = [int(tree.tree.span[node]) for node in (2, 4, 6)]
    assert target[first] == pytest.approx([0.65, 0.65, np.nan], nan_ok=True)
    assert target[[at + 1 for at in first]] == pytest.approx([0.8, 0.2, 0.1])
    assert np.isnan(target).sum() == len(target) - 5


def test_the_values_of_a_search_tell_a_good_kind_from_a_bad_one() -> None:
    """Words that begin with `b` succeed: after its text the target of that kind is higher."""
    game = Game(depth=2, letters=("a", "b", "ax", "ay", "bx", "by"), pays={"bx": 1.0, "by": 1.0})  # type: ignore[arg-type]
    how = replace(mcts(simulations=20), expand=SampleKinds(kinds=("a", "b"), width=4))
    _, tree = search(how, game, engine=LETTERS, limits=Limits(turns=2))
    view = path_view([rewarded(tree)])
    rule = KindValues()
    kinds = rule.of_kinds(view, np.where(np.isnan(tree.value[view.node]), 0, tree.value[view.node]))
    by_kind = {
        chr(int(tree.tokens_of(int(view.first[at]))[0])): kinds[at]
        for at in np.flatnonzero(~np.isnan(kinds))
        if tree.kind[view.first[at]] == Kind.ACTION
    }
    assert by_kind["b"] == 1
    assert by_kind["a"] == 0


def test_bad_settings() -> None:
    for kinds in ((), ("a", "a"), ("",)):
        with pytest.raises(ValueError, match=r"SampleKinds.kinds: got .*; need"):
            SampleKinds(kinds=kinds)
    how = replace(mcts(simulations=1), expand=SampleKinds(kinds=("a", "retrieve: "), width=6))
    with pytest.raises(
        ValueError, match=r"SampleKinds\.kinds: got \['retrieve: '\], .*sampling\.max_tokens=\d+ tokens"
    ):
        search(how, Game(depth=6), engine=LETTERS)
