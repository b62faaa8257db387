"""Widths that are shared out, and places that are kept: against brute force."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.search.game import Game, Known, search, word

from bough.search import BeamWidth, Level, RebaseAllocation, RougeL, Search, Sparse
from bough.search.ets import choose, clusters
from bough.search.expand import Admissible, Sample
from bough.search.rebase import split
from bough.searches.ets import ets
from bough.searches.rebase import rebase


@pytest.mark.parametrize(
    ("width", "scores", "shares"),
    [(8, [0.9, 0.7, 0.3], [6, 2, 0]), (4, [0.9, 0.89, 0.1, 0.1], [3, 1, 0, 0]), (3, [0.5] * 4, [1, 1, 1, 0])],
)
def test_rebase_shares_out_as_released(width: int, scores: list[float], shares: list[int]) -> None:
    assert split(scores, width, 0.2) == shares


@given(
    strategies.lists(strategies.floats(-50, 50), min_size=1, max_size=12),
    strategies.integers(0, 40),
    strategies.floats(0.01, 5),
)
def test_shares_add_up_to_the_width_and_follow_the_scores(scores: list[float], width: int, temperature: float) -> None:
    shares = split(sorted(scores, reverse=True), width, temperature)
    assert sum(shares) == width
    assert shares == sorted(shares, reverse=True)
    exact = np.exp((np.sort(scores)[::-1] - max(scores)) / temperature)
    assert shares[0] == math.ceil(width * exact[0] / sum(exact)) or width == 0


def brute(walks: list[list[int]], gains: list[float], kinds: list[int], cost: float, spread: float) -> float:
    places = len({place for walk in walks for place in walk})
    return max(
        worth(set(some), walks, gains, kinds, cost / places, spread / len(set(kinds)))
        for size in range(1, len(walks) + 1)
        for some in itertools.combinations(range(len(walks)), size)
    )


def worth(
    some: set[int], walks: list[list[int]], gains: list[float], kinds: list[int], each: float, bonus: float
) -> float:
    kept = {place for leaf in some for place in walks[leaf]}
    return sum(gains[leaf] for leaf in some) - each * len(kept) + bonus * len({kinds[leaf] for leaf in some})


@settings(max_examples=60)
@given(data=strategies.data(), cost=strategies.floats(0, 3), spread=strategies.floats(0, 3))
def test_what_ets_keeps_is_the_best_of_all_subsets(data: strategies.DataObject, cost: float, spread: float) -> None:
    above = [-1, *(data.draw(strategies.integers(0, place - 1)) for place in range(1, 5))]
    count = data.draw(strategies.integers(1, 8))
    walks: list[list[int]] = []
    for leaf in range(count):
        walk, place = [100 + leaf], data.draw(strategies.integers(0, 4))
        while place >= 0:
            walk.insert(0, place)
            place = above[place]
        walks.append(walk)
    gains = [data.draw(strategies.floats(0, 1)) for _ in walks]
    named = [data.draw(strategies.integers(0, 3)) for _ in walks]
    kinds = [sorted(set(named)).index(name) for name in named]
    chosen = choose(walks, gains, kinds, cost=cost, spread=spread)
    places = len({place for walk in walks for place in walk})
    got = worth(chosen, walks, gains, kinds, cost / places, spread / len(set(kinds)))
    best = brute(walks, gains, kinds, cost, spread)
    assert chosen
    assert got == pytest.approx(best, abs=1e-9)


def test_ets_keeps_the_best_also_when_it_is_worth_nothing() -> None:
    """All three together make up for what they cost, exactly; each alone does not."""
    walks = [[0, 1, 100], [0, 1, 2, 101], [0, 1, 2, 102]]
    assert choose(walks, [0.0] * 3, [0, 1, 2], cost=0.21875, spread=0.21875) == {0, 1, 2}


@pytest.mark.parametrize(("spread", "kept"), [(1.4, {0, 1, 2}), (0.0, {0, 1})])
def test_ets_keeps_what_differs_if_that_is_worth_it(spread: float, kept: set[int]) -> None:
    shares = [share / 16 for share in split([0.9, 0.88, 0.5], 16, 0.2)]
    walks = [[0, 1, 3], [0, 1, 4], [0, 2, 5]]
    assert choose(walks, shares, [0, 0, 1], cost=1.0, spread=spread) == kept


def test_a_hundred_leaves_take_no_time() -> None:
    luck = np.random.default_rng(0)
    walks = [[0, 1 + leaf % 10, 20 + leaf % 40, 100 + leaf] for leaf in range(120)]
    assert choose(walks, luck.random(120).tolist(), [leaf % 7 for leaf in range(120)], cost=1.0, spread=1.4)


def test_clusters_are_joined_by_their_average() -> None:
    def alike(one: tuple[int, ...], other: tuple[int, ...]) -> float:
        return 1 - abs(one[0] - other[0]) / 10

    assert clusters([(0,), (1,), (5,), (6,)], alike, 0.11) == [0, 0, 1, 1]
    # The two that were joined are .5 apart on average, .4 at their nearest.
    assert clusters([(0,), (1,), (5,), (6,)], alike, 0.49) == [0, 0, 1, 1]
    assert clusters([(0,), (1,), (5,), (6,)], alike, 0.51) == [0, 0, 0, 0]


TABLE = {"": 0.0, "a": 0.9, "b": 0.7, "c": 0.3} | {
    "".join(letters): 0.1 * (1 + "abc".index(letters[-1]))
    for n in (2, 3)
    for letters in itertools.product("abc", repeat=n)
}


def test_rebase_gives_each_place_its_share_and_ends_shrink_the_width() -> None:
    game = Game(depth=3, letters="abc", pays={"ba": 0.5})
    how = replace(rebase(width=8), evaluate=Known(values=TABLE))
    known, _ = search(how, game)
    level = [sum(node.depth == depth for node in known.nodes) for depth in range(4)]
    early = sum(node.ended for node in known.nodes if node.depth == 2)
    assert level == [1, 8, 8, 8 - early]
    by = {node.number: len(node.children) for node in known.root.children}
    scores = sorted((node for node in known.root.children), key=lambda node: (-node.value, node.number))
    assert [by[node.number] for node in scores] == split([node.value for node in scores], 8, 0.2)


def test_sparse_gives_up_what_is_like_the_others() -> None:
    how = replace(ets(width=4, spread=0.0), expand=Admissible(), merge=True, evaluate=Known(values=TABLE), rounds=1)
    assert isinstance(how.prune[0], Sparse)
    how = replace(how, prune=(replace(how.prune[0], alike=RougeL(), per="node"),))
    assert isinstance(how.prune[0], Sparse)
    known, _ = search(how, Game(depth=3, letters="abc"))
    assert {word(node) for node in known.root.children if not node.pruned} == {"a"}
    how = replace(how, prune=(replace(how.prune[0], spread=9.0),))
    known, _ = search(how, Game(depth=3, letters="abc"))
    assert {word(node) for node in known.root.children if not node.pruned} == {"a", "b", "c"}


@pytest.mark.parametrize(("cost", "counts"), [(0.0, [3, 2, 1, 1, 1]), (1e-6, [4, 2, 1, 1])])
def test_sparse_without_a_cost_leaves_the_shares_as_they_are(cost: float, counts: list[int]) -> None:
    """Without the node of share 0, which is worth no cost, the width is shared anew and another is starved."""
    values = dict(zip(["", *"abcdef"], [0.0, 0.9, 0.75, 0.7, 0.7, 0.7, 0.6], strict=True))
    how = replace(ets(width=8, cost=cost, spread=0.0), expand=Admissible(), merge=True, rounds=1)
    assert isinstance(how.prune[0], Sparse)
    how = replace(how, prune=(replace(how.prune[0], alike=RougeL()),), evaluate=Known(values=values))
    known, _ = search(how, Game(depth=3, letters="abcdef"))
    given = Counter(node.number for node in RebaseAllocation(width=8)(known))
    assert list(given.values()) == counts


@settings(max_examples=20)
@given(scores=strategies.lists(strategies.integers(0, 3), min_size=9, max_size=9), width=strategies.integers(1, 9))
def test_keep_keeps_the_best_the_first_of_equals(scores: list[int], width: int) -> None:
    words = ["".join(letters) for letters in itertools.product("abc", repeat=2)]
    table = {"": 0.0, "a": 1.0, "b": 1.0, "c": 1.0} | dict(zip(words, map(float, scores), strict=True))
    how = Search(
        select=Level(),
        expand=Admissible(),
        evaluate=Known(values=table),
        prune=(BeamWidth(width=max(3, width)),),
        eager=True,
        rounds=2,
    )
    known, _ = search(how, Game(depth=4, letters="abc"))
    kept = [word(node) for node in known.nodes if node.depth == 2 and not node.pruned]
    assert kept == sorted(sorted(words, key=lambda each: -table[each])[: max(3, width)])


@pytest.mark.parametrize(("shrink", "kept"), [(True, {"b"}), (False, {"b", "c"})])
def test_ends_make_a_beam_narrower(shrink: bool, kept: set[str]) -> None:
    """One of three actions ends its path at once."""
    how = Search(
        select=Level(),
        expand=Admissible(),
        evaluate=Known(values={"": 0.0, "a": 0.0, "b": 0.9, "c": 0.8}),
        prune=(BeamWidth(width=2, shrink=shrink),),
        eager=True,
        rounds=1,
    )
    known, _ = search(how, Game(depth=3, letters="abc", pays={"a": 0.5}))
    assert {word(node) for node in known.live()} == kept


def test_samples_are_shared_out_by_the_score() -> None:
    assert isinstance(rebase().expand, Sample)
    assert rebase().merge is False
