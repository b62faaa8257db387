"""What holds for every shape that branches within turns."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies
from tests.engines import Late
from tests.explore.shapes import ends, grown, ledgered, place_of, spelling
from tests.rollout.test_builder import columns

from bough.engine import Scripted
from bough.explore import EntropyForks, EpTree, Latr, Segments
from bough.rollout import Explorer, Limits
from bough.tree import Outcome, counted


@dataclass(frozen=True, kw_only=True)
class Case:
    """A shape, and a world in which it branches: so many letters an action, and so many until the end."""

    shape: Explorer
    letters: int
    end: int


CASES = [
    Case(shape=Segments(width=7, divergence=3, tokens=2), letters=6, end=14),
    Case(shape=EpTree(chains=3, rounds=2), letters=5, end=10),
    Case(shape=EntropyForks(), letters=1, end=5),
    Case(shape=EntropyForks(balance=1.0, penalty=0.05), letters=1, end=5),
    Case(shape=Latr(windows=(2, 4), gap=0.5, floor=0.1), letters=5, end=10),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_order_of_arrival_does_not_show(case: Case) -> None:
    plain = Scripted(script=spelling(case.letters))
    expected = columns(grown(place_of(plain, turns=case.end), case.shape, seed=3))
    seeds = [request.seed for request in plain.requests]
    assert len(set(seeds)) == len(seeds)
    for chance in range(10):
        late = Late(plain, random.Random(chance))
        assert columns(grown(place_of(late, turns=case.end), case.shape, seed=3)) == expected
    assert columns(grown(place_of(plain, turns=case.end), case.shape, seed=4)) != expected


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=25)
@given(
    tokens=strategies.none() | strategies.integers(8, 80),
    steps=strategies.none() | strategies.integers(1, 12),
    calls=strategies.none() | strategies.integers(1, 20),
    seed=strategies.integers(0, 99),
)
def test_what_is_done_when_a_budget_ends_is_kept(
    case: Case, tokens: int | None, steps: int | None, calls: int | None, seed: int
) -> None:
    limits = Limits(tree_tokens=tokens, tree_turns=steps, tree_calls=calls)
    place = place_of(Scripted(script=spelling(case.letters)), turns=case.end, max_tokens=8, limits=limits)
    tree, rollout = ledgered(place, case.shape, seed=seed)
    spent = rollout.budget.spent
    for used, most in ((spent.tokens, tokens), (spent.turns, steps), (spent.calls, calls)):
        assert most is None or used <= most
    assert spent.tokens == int(tree.sampled.sum())
    assert len(counted(tree)) >= 1
    assert set(ends(tree)) <= {Outcome.TERMINATED, Outcome.TRUNCATED}
