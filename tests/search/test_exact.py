# ruff: noqa: ARG002
"""Searches on problems of which everything is known."""

import heapq
import itertools
import math
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies
from tests.search.game import Game, Known, Reward, answer, search, word

from bough.env import Env, State
from bough.rollout import Cursor, Limits
from bough.search import (
    Admissible,
    AdvantageBackup,
    AStarCost,
    DedupeStates,
    DepthFirst,
    Descend,
    Likely,
    MaxBackup,
    MeanBackup,
    OracleValue,
    Search,
    SearchNode,
    SearchTree,
    Uct,
)
from bough.search.frontier import Best
from bough.searches.a_star import a_star
from bough.searches.best_first import best_first
from bough.searches.bfs_prover import bfs_prover
from bough.searches.q_star import q_star
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.sokoban import Sokoban

LIMITS = Limits(turns=40)


def values(game: Game) -> dict[str, float]:
    return {
        "".join(letters): game.exact("".join(letters))
        for length in range(game.depth + 1)
        for letters in itertools.product(game.letters, repeat=length)
    }


def tree_search(**how: object) -> Search:
    return Search(
        **{  # type: ignore[arg-type]
            "select": Descend(by=Uct(c=0.5)),
            "expand": Admissible(),
            "evaluate": Reward(),
            "success_value": None,
            "stop_value": None,
            "rounds": 100,
            **how,
        }
    )


@settings(max_examples=10)
@given(strategies.lists(strategies.floats(0, 1), min_size=8, max_size=8))
def test_max_is_exact_once_all_ends_are_known(pays: list[float]) -> None:
    game = Game(depth=3)
    game = replace(game, pays=dict(zip(game.words(), pays, strict=True)))
    how = tree_search(select=Descend(by=Uct(c=0.5), revisit=False), backup=MaxBackup())
    known, tree = search(how, game)
    assert {word(node): node.q for node in known.nodes} == values(game)
    assert game.pays["".join(answer(tree))] == max(pays)


@pytest.mark.parametrize("seed", range(3))
def test_means_of_uct_come_to_the_exact_value(seed: int) -> None:
    """The best of 8 ends is worth 1, the others up to .6: visits gather there, and the mean follows."""
    luck = random.Random(seed)
    game = Game(depth=3)
    best = luck.choice(game.words())
    game = replace(game, pays={each: 1.0 if each == best else luck.uniform(0, 0.6) for each in game.words()})
    errors = []
    for rounds in (50, 500, 4000):
        known, _ = search(tree_search(backup=MeanBackup(), rounds=rounds), game)
        assert known.root.visits == sum(child.visits for child in known.root.children)
        errors.append(1 - known.root.q)
        favourite = max(known.root.children, key=lambda child: child.visits)
        assert favourite.action == best[0]
    assert errors[0] > errors[1] > errors[2] > 0
    assert errors[2] < 0.02


def test_a_tree_of_which_all_is_known_ends_a_search_that_does_not_revisit() -> None:
    game = Game(depth=2, pays={"aa": 0.5, "ab": 0.2, "ba": 0.1, "bb": 0.3})
    known, _ = search(tree_search(select=Descend(by=Uct(c=0.5), revisit=False), rounds=10_000), game)
    assert known.root.visits == 4
    assert {word(node): node.visits for node in known.nodes if node.ended} == dict.fromkeys(game.words(), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Less:
    """Some of the turns that are really left: never more."""

    share: float

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return -1000.0 if plan is None else -float(math.floor(self.share * len(plan)))


def textbook(env: Env, start: State, share: float, deepest: bool) -> tuple[int, int]:
    """Turns of the way found and places expanded by A* with a closed list, its goal test when a place's turn comes."""

    def ahead(state: State) -> float:
        plan = env.plan(state)  # type: ignore[attr-defined]
        return 1000.0 if plan is None else math.floor(share * len(plan))

    count = itertools.count()
    queue: list[tuple[float, int, int, int, State, bool]] = [(ahead(start), 0, next(count), 0, start, False)]
    known, expanded = {start.key: 0}, 0
    while queue:
        _, _, _, turns, state, goal = heapq.heappop(queue)
        if goal:
            return turns, expanded
        if known[state.key] < turns:
            continue
        expanded += 1
        for action in state.admissible or ():
            step = env.step(state, action)
            if step.outcome != 0 and not step.success:
                continue
            if not step.success and known.get(step.state.key, math.inf) <= turns + 1:
                continue
            known[step.state.key] = turns + 1
            rank = turns + 1 + (0.0 if step.success else ahead(step.state))
            heapq.heappush(
                queue, (rank, -turns - 1 if deepest else 0, next(count), turns + 1, step.state, step.success)
            )
    raise AssertionError("no way")


PROBLEMS: list[tuple[Env, int]] = [
    (Sokoban(size=6, walls=0.0, min_moves=4), 4),
    (FrozenLake(size=5, min_moves=4), 4),
]


@pytest.mark.parametrize("deepest", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
@pytest.mark.parametrize(("env", "count"), PROBLEMS, ids=["sokoban", "frozenlake"])
def test_a_star_is_the_textbooks(env: Env, count: int, share: float, deepest: bool) -> None:
    for task in env.tasks("train", count, 1):
        start = env.start(task)
        shortest = len(env.plan(start))  # type: ignore[attr-defined]
        select = Best(by=AStarCost(), deepest=deepest)
        how = replace(a_star(), select=select, expand=Admissible(), evaluate=Less(share=share), rounds=10_000)
        known, tree = search(how, env, limits=LIMITS, task=task)
        turns, expanded = textbook(env, start, share, deepest)
        assert len(answer(tree)) == turns == shortest
        assert sum(node.expansions > 0 for node in known.nodes) <= expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """Minus the turns that are left after an action: what Q* learns."""

    env: Env

    async def __call__(self, tree: SearchTree, node: SearchNode, children: list[SearchNode]) -> list[float]:
        assert isinstance(node.at, Cursor)
        steps = [self.env.step(node.at.state, child.action) for child in children]
        plans = [() if step.success else self.env.plan(step.state) for step in steps]  # type: ignore[attr-defined]
        return [-1000.0 if plan is None else -float(len(plan)) for plan in plans]


@pytest.mark.parametrize(("env", "count"), PROBLEMS, ids=["sokoban", "frozenlake"])
def test_q_star_carries_out_only_what_it_takes_up(env: Env, count: int) -> None:
    """With an exact Q the environment takes as many steps as the way has, A* as many as the places on it have ways."""
    for task in env.tasks("train", count, 1):
        shortest = len(env.plan(env.start(task)))  # type: ignore[attr-defined]
        known, tree = search(replace(q_star(), rate=After(env=env)), env, limits=LIMITS, task=task)
        assert len(answer(tree)) == shortest
        assert tree.counts.turns == shortest
        assert sum(node.expansions > 0 for node in known.nodes) == shortest
        other, tree = search(replace(a_star(), expand=Admissible()), env, limits=LIMITS, task=task)
        assert tree.counts.turns == 4 * sum(node.expansions > 0 for node in other.nodes) == 4 * shortest


def test_q_star_asks_the_policy_once_for_each_place() -> None:
    known, tree = search(replace(q_star(), rate=Likely(), rounds=3), Game(depth=4))
    rated = [node for node in known.nodes if not math.isnan(node.rating)]
    assert len(rated) == len(known.nodes) - 1 == 6
    assert tree.counts.calls == 3
    assert tree.counts.tokens == 0
    assert all(-3 <= node.rating <= 0 for node in rated)


@pytest.mark.parametrize(("env", "count"), PROBLEMS, ids=["sokoban", "frozenlake"])
def test_best_first_finds_a_shortest_way_with_exact_values(env: Env, count: int) -> None:
    for task in env.tasks("train", count, 1):
        how = replace(best_first(), expand=Admissible(), evaluate=OracleValue())
        _, tree = search(how, env, limits=LIMITS, task=task)
        assert len(answer(tree)) == len(env.plan(env.start(task)))  # type: ignore[attr-defined]


@settings(max_examples=20)
@given(seed=strategies.integers(0, 1000), budget=strategies.integers(1, 60))
def test_one_way_to_each_state_and_it_is_a_shortest(seed: int, budget: int) -> None:
    """Words that are equal but for the order of their letters are one state: brute force over all that was reached."""
    luck = random.Random(seed)
    game = Game(depth=5, letters="abc", keys=lambda said: "".join(sorted(set(said))))
    table = {"".join(each): luck.random() for n in range(6) for each in itertools.product("abc", repeat=n)}
    how = Search(
        select=Best(),
        expand=Admissible(),
        evaluate=Known(values=table),
        prune=(DedupeStates(),),
        eager=True,
        rounds=budget,
    )
    known, _ = search(how, game)
    reached = [node for node in known.nodes if isinstance(node.at, Cursor) and not math.isnan(node.value)]
    kept = [node for node in [known.root, *reached] if not node.pruned and isinstance(node.at, Cursor)]
    keys = [node.at.state.key for node in kept if isinstance(node.at, Cursor)]
    assert len(keys) == len(set(keys))
    for node in kept:
        assert isinstance(node.at, Cursor)
        same = [
            each.depth for each in reached if isinstance(each.at, Cursor) and each.at.state.key == node.at.state.key
        ]
        assert node.depth == min([*same, node.depth])


@settings(max_examples=15)
@given(seed=strategies.integers(0, 10_000), rounds=strategies.integers(1, 40), eager=strategies.booleans())
def test_visits_are_evaluations_at_and_below(seed: int, rounds: int, eager: bool) -> None:
    luck = random.Random(seed)
    game = Game(depth=4)
    game = replace(game, pays={each: luck.uniform(0, 0.9) for each in game.words()})
    for backup in (MeanBackup(), MeanBackup(own=False), MaxBackup(), AdvantageBackup()):
        table = {key: luck.random() for key in values(game)}
        how = tree_search(evaluate=Known(values=table), backup=backup, rounds=rounds, eager=eager, success_value=1.0)
        known, _ = search(how, game)
        for node in known.nodes:
            own = not math.isnan(node.value)
            if node.ended:
                assert (node.visits > 0) == own
            else:
                assert node.visits == own + sum(child.visits for child in node.children)


@pytest.mark.parametrize(
    "how",
    [
        a_star(),
        best_first(),
        bfs_prover(),
        replace(q_star(), rate=Likely()),
        tree_search(success_value=1.0, backup=MaxBackup()),
    ],
)
def test_more_budget_never_finds_a_worse_answer(how: Search) -> None:
    """What is deterministic is the same search, longer."""
    env = FrozenLake(size=4, min_moves=4)
    how = replace(
        how, expand=Admissible(), evaluate=OracleValue() if how.evaluate != a_star().evaluate else how.evaluate
    )
    for task in env.tasks("train", 2, 3):
        found = []
        for turns in (1, 8, 16, 64, 256):
            _, tree = search(replace(how, rounds=500), env, limits=Limits(turns=20, tree_turns=turns), task=task)
            done = env.start(task)
            for action in answer(tree):
                step = env.step(done, action)
                done = step.state
            found.append(bool(answer(tree)) and step.success)
        assert found == sorted(found)
        assert found[-1]


def test_a_world_with_early_ends() -> None:
    """An end that comes first is no better for that: of equals the shortest is the answer."""
    game = Game(depth=4, pays={"abba": 1.0, "bb": 1.0})
    _, tree = search(replace(a_star(), expand=Admissible(), rounds=100), game)
    assert answer(tree) == ["b", "b"]
    everything = Search(select=DepthFirst(), expand=Admissible(), stop_value=None)
    known, tree = search(everything, Game(depth=3, pays={"aaa": 1.0, "bb": 1.0}))
    assert answer(tree) == ["b", "b"]
    assert [word(node) for node in known.nodes if node.success] == ["aaa", "bb"], "the longer one was found first"
