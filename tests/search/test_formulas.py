"""Scores and backups: the numbers of the papers, and of their released code where that is right."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies
from tests.search.game import Game, search

from bough.search import (
    Admissible,
    AdvantageBackup,
    ConstantValue,
    Descend,
    Level,
    Likelihood,
    MaxBackup,
    MeanBackup,
    Puct,
    QValue,
    Search,
    SearchNode,
    SoftmaxBackup,
    SumBackup,
    Uct,
)
from bough.search.node import MaybeNode


def near(value: float) -> object:
    return pytest.approx(value, abs=6e-5)


def node(parent: MaybeNode = None, **how: Any) -> SearchNode:
    made = SearchNode(
        number=0 if parent is None else 10 * parent.number + len(parent.children) + 1, parent=parent, **how
    )
    if parent is not None:
        made.depth = parent.depth + 1
        parent.children.append(made)
    return made


def written(made: SearchNode, logprob: float, tokens: int) -> SearchNode:
    made.draft = SimpleNamespace(logprob=logprob, sampled_tokens=tokens)  # type: ignore[assignment]
    return made


def counted(backup: Any, *nodes: SearchNode) -> None:
    for each in nodes:
        backup(each)


def test_uct_and_the_mean_without_own_values_are_rest_mcts() -> None:
    root = node(visits=3)
    a, b = node(root, q=0.8, value=0.8, visits=2), node(root, q=0.2, value=0.2, visits=1)
    score = Uct(c=0.7 * math.sqrt(2))
    assert (score(a), score(b)) == (near(1.5337), near(1.2376))
    MeanBackup(own=False)(a)
    assert root.q == near(0.65)


def test_the_mean_without_own_values_is_med_s3() -> None:
    root = node()
    a, b = node(root, value=0.8), node(root, value=0.2)
    counted(MeanBackup(own=False), a, b)
    counted(MeanBackup(own=False), node(a, value=1.0))
    assert (a.q, root.q) == (near(1.0), near(0.7333))


def test_the_mean_with_inertia_is_med_s3s_second_rule() -> None:
    root = node()
    a, b = node(root, value=0.8), node(root, value=0.2)
    counted(MeanBackup(own=False, inertia=0.5), a, b, node(a, value=1.0))
    assert (a.q, root.q) == (near(0.9), near(0.5583))
    with pytest.raises(ValueError, match=r"MeanBackup.inertia: got 0\.5 with own=True; need 0, or own=false"):
        MeanBackup(inertia=0.5)


def test_own_values_count_once() -> None:
    root = node()
    a = node(root, value=0.8)
    counted(MeanBackup(), a, node(a, value=1.0))
    assert (a.q, a.visits, root.visits) == (near(0.9), 2, 2)


def test_the_best_below_is_discounted() -> None:
    root = node()
    a, b = node(root, value=0.2), node(root, value=0.5)
    counted(MaxBackup(gamma=0.9), a, b, node(a, value=1.0))
    assert (a.q, root.q) == (near(0.9), near(0.81))


def test_unvisited_children_as_in_rstar_and_rest_mcts() -> None:
    """0 for rStar-Math, the first of equals; value + 1 for ReST-MCTS*; before all others otherwise."""
    root = node(visits=1)
    new = node(root, rating=0.3)
    assert Uct(c=2.0, unvisited="rating")(node(root)) == 0
    assert Uct(unvisited="rating", bonus=1.0)(new) == near(1.3)
    assert Uct()(new) == math.inf


def test_puct_is_prorags_but_for_its_discount() -> None:
    root = node()
    a, b = node(root, prior=0.5), node(root, prior=0.5)
    end = node(a, value=1.0)
    MeanBackup(gamma=0.99)(end)
    assert (a.q, root.q) == (near(0.99), near(0.9801))
    assert (Puct(c=2.5)(a), Puct(c=2.5)(b)) == (near(0.99 + 0.625), near(1.25))


def test_puct_grows_as_in_rethink_mcts() -> None:
    root = node(visits=5)
    child = node(root, prior=0.5, q=0.4, visits=2)
    weight = math.log((5 + 10 + 1) / 10) + 4
    assert Puct(c=4.0, base=10.0, log=True)(child) == near(0.4 + weight * 0.5 * math.sqrt(math.log(5)) / 3)
    root.visits = 0
    assert Puct(c=4.0, base=10.0, log=True)(child) == near(0.4)


def test_a_mean_is_not_divided_again() -> None:
    """LATS's released code takes the mean 1.0 of three visits for .333."""
    root = node()
    child = node(root, value=1.0)
    counted(MeanBackup(), child, child, child)
    assert child.visits == 3
    assert Uct(c=0.0)(child) == 1.0


def test_the_likelihood_of_bfs_prover() -> None:
    here = node()
    for logprob in (-0.2, -0.6, -0.7):
        here = written(node(here), 2 * logprob, 2)
    way = here.path()[1:]
    assert [Likelihood(alpha=0.0)(each) for each in way] == [near(-0.2), near(-0.8), near(-1.5)]
    assert [Likelihood(alpha=1.0)(each) for each in way] == [near(-0.2), near(-0.4), near(-0.5)]
    assert [Likelihood(alpha=2.0)(each) for each in way] == [near(-0.2), near(-0.2), near(-0.1667)]
    aside = written(node(way[0].parent), -0.35, 1)
    assert Likelihood(alpha=2.0)(aside) < Likelihood(alpha=2.0)(way[-1]), "the shallow one starves"


@pytest.mark.parametrize(("value", "sign"), [(1.0, 1), (-1.0, -1)])
def test_doraemon_adds_what_was_found_with_its_sign(value: float, sign: int) -> None:
    """The released code adds for failures, too, and leaves the root at 0."""
    walk = [node()]
    for _ in range(3):
        walk.append(node(walk[-1]))
    walk[-1].value = value
    SumBackup(decay=0.5)(walk[-1])
    assert [each.q for each in walk[::-1]] == [value, near(sign), near(0.6065 * sign), near(0.3679 * sign)]
    other = node(walk[2], value=-value)
    SumBackup(decay=0.5)(other)
    assert [each.q for each in walk[2::-1]] == [near(0), near(0), near(0)]


def test_gain_is_mcts_dpo() -> None:
    """Eight visits of a tree of depth 2; the root counts 8, where the released code counts 16."""
    root = node(value=0.0)
    first, second = node(root, value=0.5), node(root, value=0.5)
    good, bad, worse = node(first, value=1.5), node(first, value=-0.5), node(second, value=-0.5)
    counted(AdvantageBackup(), *[good] * 7, bad)
    v = sum(child.visits * child.q for child in first.children) / first.visits
    assert (v, first.q, good.q, bad.q) == (near(0.75), near(1.25), near(1.0), near(-1.0))
    AdvantageBackup()(worse)
    assert (second.q, second.visits, root.visits) == (near(-0.5), 1, 9)


def test_dts_backs_up_and_draws_softly() -> None:
    tree, _ = search(Search(select=Level(), expand=Admissible(), rounds=1, evaluate=ConstantValue(value=None)), Game())
    root = tree.root
    for child, value in zip(root.children, (1.0, 0.0), strict=True):
        child.value = value
        SoftmaxBackup()(child)
    assert root.q == near(0.6201)
    draws = [Descend(by=QValue(), sharpness=1.0)(tree)[0].q for _ in range(4000)]
    # Two standard errors are .014.
    assert sum(draws) / 4000 == pytest.approx(0.7311, abs=0.025)
    for child in root.children:
        child.copies = 1 if child.q else 3
    SoftmaxBackup()(root.children[0])
    assert root.q == near(math.log((math.e + 3) / 4))


@given(strategies.lists(strategies.floats(-1, 1), min_size=1, max_size=5), strategies.floats(0.1, 50))
def test_soft_lies_between_mean_and_best(found: list[float], sharpness: float) -> None:
    def q(backup: Any) -> float:
        root = node()
        counted(backup, *[node(root, value=value) for value in found])
        return root.q

    assert q(MeanBackup()) - 1e-9 <= q(SoftmaxBackup(sharpness=sharpness)) <= q(MaxBackup()) + 1e-9
