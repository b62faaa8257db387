"""ArCHer's credit: the lesser Q above the lesser V, turn by turn."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, rewarded

from bough.credit import Archer
from bough.tree import Outcome, Rewarded, Tree, token_node


def judged(tree: Tree, **of_nodes: dict[int, float]) -> Rewarded:
    """The tree with values of its turns, by node."""
    named = {}
    for name, values in of_nodes.items():
        column = np.full(tree.nodes, np.nan)
        column[list(values)] = list(values.values())
        named[name] = column[token_node(tree)]
    return replace(rewarded(tree), estimates=named)


def test_the_lesser_twin_of_each() -> None:
    tree = chains([0.0], turns=2)
    one = judged(tree, q1={1: 0.7, 3: 0.1}, q2={1: 0.5, 3: 0.4}, v1={1: 0.6, 3: 0.3}, v2={1: 0.2, 3: 0.9})
    credited = Archer()([one])[0]
    assert credited.turn_advantage is not None
    assert credited.turn_advantage.tolist() == pytest.approx([0.3, -0.2])
    nodes = token_node(tree)
    assert credited.positive[nodes == 1] == pytest.approx(0.3)
    assert credited.negative[nodes == 3] == pytest.approx(-0.2)
    assert not credited.positive[(nodes != 1) & (nodes != 3)].any()


def test_the_return_of_the_path_is_not_looked_at() -> None:
    values = {name: {1: 0.5} for name in ("q1", "q2")} | {name: {1: 0.2} for name in ("v1", "v2")}
    lost, won = (Archer()([judged(chains([paid]), **values)])[0] for paid in (0.0, 1.0))
    assert lost.positive.tolist() == won.positive.tolist()
    assert lost.positive.max() == pytest.approx(0.3)


def test_a_turn_in_which_nothing_was_written() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=()),
        N(parent=1, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED),
    )
    nothing = np.full(1, np.nan)
    one = replace(rewarded(tree), estimates=dict.fromkeys(("q1", "q2", "v1", "v2"), nothing))
    credited = Archer()([one])[0]
    assert credited.turn_advantage is not None
    assert credited.turn_advantage.tolist() == [0.0]


def test_a_run_without_its_critic_is_told() -> None:
    with pytest.raises(ValueError, match="got no estimate 'q1'"):
        Archer()([rewarded(chains([1.0]))])
