# ruff: noqa: ARG002
"""Targets of Q from the ratings of a search."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.explore.stage import says
from tests.search.game import Game, search, word
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import QLearning
from bough.engine import Scripted
from bough.needs import value_head
from bough.search import SearchNode, SearchTree
from bough.search.critic_turns import turns_to_go
from bough.searches.q_star import q_star
from bough.tree import Kind, Outcome, Ternary, path, path_view

YES, NO = Ternary.YES, Ternary.NO


def test_worked_example() -> None:
    """After `a` the next actions are rated -1 and -3; the first was executed, and ended without success."""
    tree = rewarded(
        build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION, rating=-2.0, valid=YES),
            N(parent=1, kind=OBSERVATION),
            N(parent=2, kind=ACTION, rating=-1.0, valid=YES),
            N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=NO),
            N(parent=2, kind=ACTION, rating=-3.0),
            N(parent=0, kind=ACTION, rating=-1.0, valid=YES),
            N(parent=6, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=YES),
            N(parent=0, kind=ACTION, rating=-5.0, valid=YES),
            N(parent=8, kind=OBSERVATION, outcome=Outcome.TRUNCATED),
        )
    )
    rule = QLearning()
    assert rule.needs == {value_head("value")}
    (credited,) = rule([tree])
    targets = credited.value_targets["value"]
    assert targets[[1, 3, 6]] == pytest.approx([0.81, 0.0, 1.0])
    assert np.isnan(targets[[0, 2, 4, 5, 7, 8, 9]]).all(), "no target for what was not executed, or led nowhere known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A critic that knows a value for each action of each state."""

    values: dict[str, float] = field(default_factory=dict[str, float])

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> list[float]:
        return [-turns_to_go(self.values.get(word(child), 0.5), 0.9, 1e-3) for child in children]


def test_rounds_of_search_and_update_learn_the_exact_turns_and_then_only_a_shortest_path_is_executed() -> None:
    game, table = Game(depth=4, pays={"bbab": 1.0}), Table()
    engine = Scripted(script=says(lambda luck: luck.choice("ab")))
    turns: list[int] = []
    for _ in range(5):
        how = replace(q_star(width=16), rate=table)
        turns.append(search(how, game, engine=engine)[1].counts.turns)
        _, tree = search(replace(how, stop_value=None), game, engine=engine)
        view = path_view([rewarded(tree)])
        for node, target in zip(view.node.tolist(), QLearning().targets(view).tolist(), strict=True):
            if not np.isnan(target):
                said = [tree.info[each]["text"] for each in path(tree, node) if tree.kind[each] == Kind.ACTION]
                table.values["".join(map(str, said))] = target
    assert len(table.values) == 30
    for said, value in table.values.items():
        left = 4 - len(said)
        assert value == pytest.approx(0.9**left if "bbab".startswith(said) else 0.0, abs=2e-3), said
    assert turns[-1] == 4 < turns[0]


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"QLearning.discount: got 1; need a number between 0 and 1"):
        QLearning(discount=1)
