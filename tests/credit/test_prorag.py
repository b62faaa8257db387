"""ProRAG's advantages: the worked example, and what each term sees."""

from dataclasses import replace

import numpy as np
import pytest
from tests.credit.seen import paid, turns_of

from bough.cli.find import find_run
from bough.credit import ProRag
from bough.critics import FrozenRewardModel, RewardModel
from bough.explore import BeforeUpdates, Chains
from bough.searches.prorag import prorag
from bough.tree import Rewarded, begins_turn


def scored(scores: list[float], *returns: list[float]) -> Rewarded:
    """Paths with the rewards of their turns, and the score of each turn in order."""
    given = paid(*returns)
    column = np.full(len(given.tree.token), np.nan)
    for node, score in zip(np.flatnonzero(begins_turn(given.tree)).tolist(), scores, strict=True):
        column[given.tree.span[node] : given.tree.span[node + 1]] = score
    return replace(given, estimates={"step_score": column})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ProRag(), [[1.368545, 0.045669], [-0.707107, -0.707107]]),
        (ProRag(beta=0.0), [[0.707107, 0.707107], [-0.707107, -0.707107]]),
        (ProRag(as_released=True), [[1.414114, -0.0001], [-0.707007, -0.707007]]),
    ],
)
def test_worked_example(rule: ProRag, expected: list[list[float]]) -> None:
    (credited,) = rule([scored([2.0, 0.0, 1.0, 1.0], [0.0, 1.0], [0.0, 0.0])])
    for found, wanted in zip(turns_of(credited), expected, strict=True):
        assert found == pytest.approx(wanted, abs=2e-5)


def test_scores_give_an_advantage_where_all_returns_are_equal() -> None:
    (credited,) = ProRag()([scored([2.0, 0.0, 1.0, 1.0], [0.0, 1.0], [0.0, 1.0])])
    assert turns_of(credited)[0] == pytest.approx([0.661438, -0.661438], abs=2e-5)
    (flat,) = ProRag()([scored([1.0, 1.0, 1.0, 1.0], [0.0, 1.0], [0.0, 1.0])])
    assert not flat.advantage[~np.isnan(flat.advantage)].any()


def test_the_method_searches_until_a_ranker_of_siblings_has_learned() -> None:
    run = find_run("prorag(collect=3,simulations=20)", "search")
    assert run.method.explorer == BeforeUpdates(first=prorag(simulations=20), then=Chains(n=8))
    ranker = RewardModel(labels="pairs", estimate="value", gap=0.1)
    assert run.method.hooks == (FrozenRewardModel(model=ranker, warmup_steps=3),)
    assert run.method.credit == ProRag(beta=0.5)
