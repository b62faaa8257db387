# ruff: noqa: ARG002
"""Where searches go on, what they give up, and what they settle on."""

import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.explore.stage import grow, runner, scripted
from tests.search.game import Game, Known, Reward, answer, search, word

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.rollout import Cursor, Explorer, Limits
from bough.search import (
    Admissible,
    AStarCost,
    BackJump,
    Best,
    BestOf,
    Commit,
    ConstantValue,
    DedupeSimilar,
    DedupeStates,
    DepthFirst,
    Descend,
    FinishPathFirst,
    Level,
    Likelihood,
    LimitRepeats,
    MaxBackup,
    MeanBackup,
    NodeValue,
    PruneBelow,
    QValue,
    RatedValue,
    Sample,
    Search,
    SearchNode,
    SearchTree,
    SumBackup,
    Uct,
    UnionOf,
    VisitCount,
    Vote,
)
from bough.searches.best_first import best_first
from bough.searches.bfs_prover import bfs_prover
from bough.searches.dfsdt import dfsdt
from bough.searches.dts import dts
from bough.searches.lats import lats
from bough.tree import Ternary


def carried_out(known: SearchTree) -> list[str]:
    """What was done, in order."""
    done = [node for node in known.nodes if node.draft is not None and node.at is not None]
    at = known.rollout.answered
    return [word(node) for node in sorted(done, key=lambda node: at[node.draft.node])]  # type: ignore[union-attr]


def counter_engine() -> Scripted:
    """Writes 1, 2, 3 ... in the order in which it is asked, as the released code numbers its nodes."""
    count = iter("123456789ABCDEFGHIJKLMNOP")
    return Scripted(script=lambda _: (ord(next(count)),))


@pytest.mark.parametrize(
    ("wins", "order"),
    [
        ({}, ["1", "12", "123", "14", "145", "6", "67", "678", "69", "69A"]),
        ({"14": 1.0}, ["1", "12", "123", "14"]),
    ],
)
def test_dfsdt_goes_as_released(wins: dict[str, float], order: list[str]) -> None:
    game = Game(depth=3, letters="123456789A", pays=wins)
    known, tree = search(dfsdt(width=2, back=2), game, engine=counter_engine())
    assert carried_out(known) == order
    assert tree.counts.calls == len(order)
    if wins:
        assert answer(tree) == ["1", "4"]


def test_going_back_by_one_leaves_nothing_out() -> None:
    known, _ = search(dfsdt(width=2, back=1), Game(depth=3, letters="123456789ABCDE"), engine=counter_engine())
    assert carried_out(known)[:6] == ["1", "12", "123", "124", "15", "156"]
    assert sum(node.ended for node in known.nodes) == 8


def test_one_end_at_once_does_not_end_a_depth_first_search() -> None:
    """The released code goes back beyond the root, and is over."""
    known, _ = search(dfsdt(width=3, back=2), Game(depth=1, letters="123"), engine=counter_engine())
    assert sum(node.ended for node in known.nodes) == 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """Rates the last letter of the alphabet best."""

    async def __call__(self, tree: SearchTree, node: SearchNode, children: list[SearchNode]) -> list[float]:
        return [float(ord(child.action)) for child in children]


def test_depth_first_takes_the_best_rated_first() -> None:
    how = Search(select=DepthFirst(), expand=Admissible(), rate=Last(), prune=(BackJump(turns=2),))
    known, _ = search(how, Game(depth=3, letters="abc", pays={"b": 1.0}))
    assert carried_out(known) == ["c", "cc", "ccc", "cb", "cbc", "ca", "cac", "b"]


@settings(max_examples=8)
@given(
    seed=strategies.integers(0, 10_000),
    width=strategies.integers(1, 3),
    deepest=strategies.booleans(),
    expansions_per_node=strategies.integers(1, 2),
    eager=strategies.booleans(),
)
def test_a_heap_is_a_sorted_frontier(
    seed: int, width: int, deepest: bool, expansions_per_node: int, eager: bool
) -> None:
    """Scores that stay are asked for once; the search is the one that asks for all of them in every round."""

    @dataclass(frozen=True)
    class Anew:
        by: Any

        def __call__(self, node: SearchNode) -> float:
            return self.by(node)

    luck = random.Random(seed)
    values = {key: float(luck.randint(0, 3)) for key in _words("abc", 4)}
    for by in (NodeValue(), AStarCost(), Likelihood(), RatedValue()):
        trees = []
        for score in (by, Anew(by)):
            how = Search(
                select=Best(by=score, width=width, deepest=deepest),
                expand=Sample(width=2),
                evaluate=Known(values=values),
                rate=Last(),
                eager=eager,
                expansions_per_node=expansions_per_node,
                prune=(DedupeStates(),),
                rounds=12,
            )
            engine = scripted(lambda chance: chance.choice("abc"))
            trees.append(search(how, Game(depth=4, letters="abc"), engine=engine)[1])
        assert trees[0].equals(trees[1]), by


def _words(letters: str, depth: int) -> list[str]:
    words = level = [""]
    for _ in range(depth):
        level = [word + letter for word in level for letter in letters]
        words = words + level
    return words


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_bfs_prover_expands_the_open_node_with_the_likeliest_path(alpha: float) -> None:
    score = Likelihood(alpha=alpha)
    known, _ = search(replace(bfs_prover(width=8, alpha=alpha), rounds=8), Game(depth=6))
    expanded = sorted((node for node in known.nodes if node.children), key=lambda node: node.children[0].number)
    assert len(expanded) == 8
    for place, node in enumerate(expanded):
        met = [each for each in known.nodes if each.number < node.children[0].number and not each.ended]
        assert score(node) == max(score(each) for each in met if each not in expanded[:place])


def test_best_first_goes_on_below_the_place_of_highest_value() -> None:
    """An action that is not executed yet has the value of the place where it is one; ties go to the first found."""
    values = dict.fromkeys(_words("ab", 4), 0.0) | {"": 0.5, "a": 0.2, "b": 0.9, "ba": 0.8, "bb": 0.1, "baa": 0.3}
    how = replace(best_first(), expand=Admissible(), evaluate=Known(values=values), rounds=8)
    known, _ = search(how, Game(depth=4))
    assert carried_out(known) == ["a", "b", "ba", "bb", "baa", "bab", "baaa"]


def test_several_heaps_share_what_goes_on() -> None:
    values = {"": 0.0, "a": 0.9, "b": 0.1, "c": 0.2} | dict.fromkeys(_words("abc", 4)[4:], 0.0)
    heaps = (Best(by=NodeValue()), Best(by=RatedValue()))
    how = Search(
        select=UnionOf(of=heaps), expand=Admissible(), evaluate=Known(values=values), rate=Last(), eager=True, rounds=2
    )
    known, _ = search(how, Game(depth=4, letters="abc"))
    assert {word(node) for node in known.nodes if node.expansions} == {"", "a", "c"}
    known, _ = search(replace(how, select=UnionOf(of=(heaps[0], heaps[0]))), Game(depth=4, letters="abc"))
    assert {word(node) for node in known.nodes if node.expansions} == {"", "a"}


def test_dts_ends_are_visited_as_often_as_the_policy_gets_there_times_exp_of_value() -> None:
    """Two actions, equally likely: p exp(sharpness r), .5 e^2 and .5, so .881 of the visits are of the first."""
    game = Game(depth=1, pays={"a": 0.9999, "b": 0.0})
    shares = []
    for rounds in (60, 4000):
        how = replace(dts(width=8, sharpness=2.0), success_value=None, evaluate=Reward(), rounds=rounds)
        known, _ = search(how, game)
        assert sum(child.copies for child in known.root.children) == 8
        a = known.root.children["ab".index(known.root.children[0].action)]
        b = next(child for child in known.root.children if child is not a)
        exact = a.copies * math.exp(2 * a.q) / (a.copies * math.exp(2 * a.q) + b.copies * math.exp(2 * b.q))
        shares.append(abs(a.visits / known.root.visits - exact))
        assert known.root.q == pytest.approx(math.log((a.copies * math.exp(2 * a.q) + b.copies) / 8) / 2, abs=1e-3)
    assert shares[1] < 0.02


def test_dts_plays_each_path_to_its_end_and_greedy_takes_the_best() -> None:
    game = Game(depth=3, pays={"aaa": 0.5})
    known, _ = search(replace(dts(width=2), rounds=3), game)
    assert [word(node) for node in known.nodes][-1].startswith(known.nodes[1].action)
    assert [node.depth for node in known.nodes] == [0, 1, 2, 3]
    how = Search(
        select=FinishPathFirst(then=Descend(by=QValue(), sharpness=None)),
        expand=Admissible(),
        evaluate=Reward(),
        backup=MaxBackup(),
        success_value=None,
        stop_value=None,
        rounds=60,
    )
    known, tree = search(how, game)
    assert answer(tree) == ["a", "a", "a"]
    (end,) = [node for node in known.nodes if word(node) == "aaa"]
    assert end.visits > 10


def test_lost_paths_turn_doraemon_away() -> None:
    """With the released sign both ways would be tried alike."""
    game = Game(depth=2, pays={"bb": 1.0})
    how = Search(
        select=Descend(by=QValue(), sharpness=3.0, revisit=False),
        expand=Admissible(),
        backup=SumBackup(),
        eager=True,
        evaluate=ConstantValue(value=None),
        failure_value=-1.0,
        stop_value=None,
    )
    known, _ = search(replace(how, rounds=2), Game(depth=2, pays={"aa": 0.0, "ab": 0.0, "ba": 0.0, "bb": 0.0}))
    first = next(child for child in known.root.children if child.children)
    assert first.q == known.root.q / math.exp(-0.5) == -2
    _, tree = search(replace(how, rounds=6), game)
    assert answer(tree) == ["b", "b"]


def test_all_failed_ends_a_search() -> None:
    """LATS's released code looks for another node forever."""
    known, _ = search(replace(lats(width=2), rounds=10_000), Game(depth=1))
    assert known.root.closed
    assert known.root.visits <= 4


PAYS = {"aa": 0.4, "ab": 0.3, "ba": 0.9, "bb": 0.0}


def test_commit_settles_on_one_action_after_another() -> None:
    """The most visited, or the best; what is settled is not left again, and what is known below is kept."""
    inner = Search(
        select=Descend(by=Uct(c=1.0)),
        expand=Admissible(),
        evaluate=Reward(),
        backup=MeanBackup(),
        success_value=None,
        stop_value=None,
        rounds=5,
    )
    how = Commit(search=inner, to="action", by=VisitCount())
    game = Game(depth=2, pays=PAYS)
    _, tree = search(replace(how, search=replace(inner, rounds=200)), game)
    assert answer(tree) == ["b", "a"]
    trap = {"aa": 0.6, "ab": 0.6, "ba": 0.9, "bb": 0.0}
    _, tree = search(how, Game(depth=2, pays=trap))
    assert answer(tree)[0] == "a", "on average b is worse, and an action is settled before its best end is known"
    _, tree = search(replace(how, search=replace(inner, rounds=600)), Game(depth=2, pays=trap))
    assert answer(tree) == ["b", "a"]


def test_commit_settles_on_the_whole_way_to_the_best_place() -> None:
    values = dict.fromkeys(_words("ab", 4), 0.1) | {"ab": 0.6, "abb": 0.7, "b": 0.5}
    inner = replace(best_first(), expand=Admissible(), evaluate=Known(values=values), rounds=8)
    game = Game(depth=4, pays={"abba": 1.0, "bbbb": 0.5})
    known, tree = search(Commit(search=inner), game)
    assert answer(tree) == ["a", "b", "b", "a"]
    assert known.root.depth > 0
    beside = [node for node in known.nodes if node.depth == 1 and node.action == "b"]
    assert all(node.pruned for node in beside)


def test_copies_of_an_action_vote() -> None:
    """Three samples of one action are one node with three votes, against one vote for each of two others."""
    letters = iter("babcb")
    place = runner(Scripted(script=lambda _: (ord(next(letters)),)), InProcessHost(env=Game(depth=1, letters="abc")))
    (tree,) = grow(place, Vote(search=Search(select=Level(), expand=Sample(width=5), stop_value=None))).trees
    votes = {str(info["text"]): float(tree.value[node]) for node, info in enumerate(tree.info) if "copies" in info}
    assert votes == pytest.approx({"a": 0.2, "b": 0.6, "c": 0.2})
    assert answer(tree) == ["b"]


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (PruneBelow(threshold=0.4), {"a", "aa"}),
        (LimitRepeats(max_count=1), {"a", "b", "ab", "ba"}),
        (LimitRepeats(max_count=1, of="state"), {"a", "b", "ab", "ba", "bb"}),
        (DedupeSimilar(max_similarity=0.9), {"a", "b", "aa", "ab", "ba", "bb"}),
        # One letter and the end of the action: half of two actions is always the same.
        (DedupeSimilar(max_similarity=0.4), {"a", "aa"}),
    ],
)
def test_what_is_given_up(rule: Any, left: set[str]) -> None:
    values = {"": 0.9, "a": 0.9, "b": 0.9, "aa": 0.95, "ab": 0.1, "ba": 0.2, "bb": 0.3}
    if isinstance(rule, LimitRepeats) and rule.of == "state":
        game = Game(depth=3, keys=lambda said: "A" if said.strip("a") == "" else said)
    else:
        game = Game(depth=3)
    how = Search(
        select=Level(), expand=Admissible(), evaluate=Known(values=values), prune=(rule,), eager=True, rounds=2
    )
    known, _ = search(how, game)
    kept = {word(node) for node in known.nodes[1:] if not node.pruned and isinstance(node.at, Cursor)}
    assert kept == left


def test_a_shorter_path_to_a_state_takes_the_place_of_a_longer_one() -> None:
    """The state after `ab` is that after `b`, which is executed later."""
    values = {"": 0.5, "a": 0.9, "aa": 0.1, "ab": 0.2, "b": 0.3}
    game = Game(depth=4, keys=lambda said: "b" if said == "ab" else said)
    how = Search(select=Best(), expand=Admissible(), evaluate=Known(values=values), prune=(DedupeStates(),), rounds=5)
    known, _ = search(how, game)
    assert carried_out(known) == ["a", "aa", "ab", "b"]
    assert {word(node) for node in known.nodes if node.pruned} == {"ab", "aba", "abb"}


@pytest.mark.parametrize(
    ("depth", "width", "accuracy", "wins", "count"), [(4, 2, 0.5, "chance", 48), (6, 4, 0.95, "search", 12)]
)
def test_a_search_is_as_good_as_its_verifier(depth: int, width: int, accuracy: float, wins: str, count: int) -> None:
    """A needle: every turn must be right. At equal turns best-of-n beats a search that noise leads."""
    turns, solved = 64, Counter[str]()

    def choose(chance: random.Random) -> str:
        """Right as often as not; there are many ways to be wrong."""
        return "a" if chance.random() < 0.5 else chance.choice("bcdefghijklmnopqrstuvwxyz")

    for seed in range(count):
        # What a verifier says of a beginning is true as often as it is accurate.
        values = Verdicts(seed=seed, accuracy=accuracy)
        searches: dict[str, Explorer] = {
            "chance": BestOf(n=turns // depth, max_concurrent=1),
            "search": replace(best_first(width=width), evaluate=values, eager=True),
        }
        for name, how in searches.items():
            place = runner(
                scripted(choose),
                InProcessHost(env=Game(depth=depth, pays={"a" * depth: 1.0})),
                limits=Limits(tree_turns=turns),
            )
            (tree,) = grow(place, how, seed=seed).trees
            solved[name] += np.any(tree.success == Ternary.YES)
    other = {"chance": "search", "search": "chance"}[wins]
    assert solved[wins] > solved[other] + count / 10, solved


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """1 for what can still succeed and 0 for what cannot, or the other way round where it errs."""

    seed: int
    accuracy: float

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        said = word(node)
        true = random.Random(f"{self.seed} {said}").random() < self.accuracy
        return float((set(said) <= {"a"}) == true)
