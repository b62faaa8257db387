"""MPS-Prover: heaps by a critic and by rules over the same open nodes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.explore.stage import runner
from tests.search.game import Game, Known, search, word

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.search import ActionKind, Admissible, Best, FewestMatches, SearchNode, ShortestState, UnionOf
from bough.searches.mps_prover import mps_prover
from bough.tree import Task

TEXTS = {".": "⊢ ⊢", "a": "a ⊢ ⊢ long", "b": "b ⊢ longer still", "c": "c ⊢ ⊢ ⊢", "d": "dd ⊢ ⊢ and so on"}


class Goals(Game):
    """States with goals."""

    def _state(self, word: str):  # type: ignore[no-untyped-def]
        state = super()._state(word)
        return replace(state, observation=TEXTS.get(word or ".", "⊢ ⊢ ⊢ ⊢ and much more text"))


def test_each_rule_and_the_critic_expand_their_own_node() -> None:
    values = {"": 0.0, "a": 0.9, "b": 0.1, "c": 0.2, "d": 0.3}
    heaps = (Best(), Best(by=ActionKind(scores={"^d": 1.0})), Best(by=FewestMatches()), Best(by=ShortestState()))
    how = replace(
        mps_prover(),
        select=UnionOf(of=heaps),
        expand=Admissible(),
        evaluate=Known(values=values | {f"{one}{other}": 0.0 for one in "abcd" for other in "abcd"}),
        rounds=2,
    )
    chosen = {0: "a", 1: "d", 2: "b", 3: "c"}
    for left_out in (None, *chosen):
        some = tuple(heap for place, heap in enumerate(heaps) if place != left_out)
        known, _ = search(replace(how, select=UnionOf(of=some)), Goals(depth=3, letters="abcd"))
        expanded = {word(node) for node in known.nodes if node.expansions}
        assert expanded == {"", *(letter for place, letter in chosen.items() if place != left_out)}


def test_the_critic_is_the_agents() -> None:
    async def critic(contexts: Sequence[tuple[int, ...]]) -> list[float]:
        return [float("b" in "".join(map(chr, each)).rpartition("{")[2]) for each in contexts]

    engine = Scripted(script=lambda request: (ord("ab"[request.seed % 2]),))
    place = runner(engine, InProcessHost(env=Game(depth=3, pays={"bbb": 1.0})))
    place = replace(place, agent=replace(place.agent, critic=critic))
    (tree,) = asyncio.run(place.run(replace(mps_prover(width=6), rounds=5), [Task(id="t")], seed=0)).trees
    assert tree.success[tree.answer].tolist() == [1]


def test_scores_of_unexecuted_nodes_are_those_of_their_parents_and_settings_are_checked() -> None:
    known, _ = search(
        replace(mps_prover(), expand=Admissible(), evaluate=Known(values={"": 0.0}), rounds=1, eager=False), Goals()
    )
    child = SearchNode(number=9, parent=known.root)
    assert ShortestState()(child) == ShortestState()(known.root) == -3.0
    assert FewestMatches()(child) == -2.0
    assert FewestMatches(pattern="goal")(child) == 0.0
    with pytest.raises(ValueError, match=r"FewestMatches\.pattern: got '\('"):
        FewestMatches(pattern="(")
    with pytest.raises(ValueError, match=r"ActionKind\.scores: got '\['"):
        ActionKind(scores={"[": 1.0})
