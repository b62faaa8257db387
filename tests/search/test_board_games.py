"""Search over the actions of two seats: negamax, payoffs, and the moves that it commits to."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from tests.explore.stage import runner, says

from bough.engine import Scripted
from bough.env import Branching, InProcessHost, Split, State, Step
from bough.rollout import Explorer, Limits, SeatAgent
from bough.rollout.cursor import Cursor
from bough.search import Commit, MeanBackup, NegamaxBackup, PayoffValue, SearchNode, SearchTree
from bough.searches.board_games import board_games
from bough.tree import Kind, Outcome, Task, Tree, path, text_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Heap:
    """Take 1 or 2 from a heap, in turn. The seat that takes the last one wins."""

    begins: str = "first"
    branching: Branching = Branching.COPY
    instructions: str = "go"
    seats: ClassVar[Mapping[str, str]] = {"first": "", "second": ""}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        del split, count, seed
        return []

    def start(self, task: Task) -> State:
        return self._state(int(str(task.data["heap"])), self.begins)

    def step(self, state: State, action: str) -> Step:
        heap, seat = int(str(state.value)), state.seat
        other = "second" if seat == "first" else "first"
        left = heap - int(action)
        if left > 0:
            return Step(state=self._state(left, other))
        payoffs = {seat: 1.0, other: -1.0}
        successes = {seat: True, other: False}
        after = self._state(0, other)
        return Step(state=after, outcome=Outcome.TERMINATED, payoffs=payoffs, successes=successes)

    def _state(self, heap: int, seat: str) -> State:
        return State(observation=f"{seat} {heap}", key=f"{seat} {heap}", value=heap, admissible=("1", "2"), seat=seat)


def play(explorer: Explorer, heap: int, *, begins: str = "first", limits: Limits | None = None) -> Tree:
    """The tree of a search on a heap, with a policy that takes 1 or 2 at random for both seats."""
    engine = Scripted(script=says(lambda luck: luck.choice("12")))
    place = runner(engine, InProcessHost(env=Heap(begins=begins)), limits=limits or Limits())
    seats = {name: SeatAgent(instructions="go", agent=place.agent) for name in Heap.seats}

    async def one() -> Tree:
        task = Task(id="heap", data={"heap": heap})
        (tree,) = (await replace(place, seats=seats, seat="first").run(explorer, [task], seed=0)).trees
        return tree

    return asyncio.run(one())


def first_moves(tree: Tree) -> dict[str, tuple[int, float]]:
    """The visits and the value of each first move."""
    nodes: list[int] = np.flatnonzero((tree.kind == Kind.ACTION) & (tree.visits > 0)).tolist()
    starts = [node for node in nodes if not any(tree.kind[each] == Kind.ACTION for each in path(tree, node)[:-1])]
    return {text_in(tree.info[node]) or "": (int(tree.visits[node]), float(tree.value[node])) for node in starts}


def answered(tree: Tree) -> list[str]:
    node = int(np.flatnonzero(tree.answer)[0])
    steps = path(tree, node).tolist()
    return [text_in(tree.info[each]) or "" for each in steps if tree.kind[each] == Kind.ACTION]


@pytest.mark.parametrize("begins", ["first", "second"])
def test_the_other_seat_answers_with_its_best_move(begins: str) -> None:
    """From 5, to take 1 wins only if the other seat helps."""
    game = board_games(width=8, simulations=120, moves=1)
    moves = first_moves(play(game, 5, begins=begins))
    assert moves["2"][0] > moves["1"][0]
    assert moves["2"][1] > 0.5 > 0 > moves["1"][1]


def test_without_negamax_both_seats_work_for_the_same_one() -> None:
    game = board_games(width=8, simulations=120, moves=1)
    helped = replace(game, search=replace(game.search, backup=MeanBackup()))
    assert first_moves(play(helped, 5))["1"][1] > 0.5


@pytest.mark.parametrize("heap", [4, 5, 7, 8])
def test_both_seats_play_to_the_end_and_the_one_that_can_win_does(heap: int) -> None:
    tree = play(board_games(width=8, simulations=80), heap)
    said = answered(tree)
    assert sum(map(int, said)) >= heap
    assert int(said[0]) == heap % 3
    assert len(said) % 2 == 1, "the first seat takes the last one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory:
    """The exact payoff of the seat that acts: it loses in front of a multiple of 3."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        del tree
        assert isinstance(node.at, Cursor)
        return 1.0 if int(str(node.at.state.value)) % 3 else -1.0


@pytest.mark.parametrize(("heap", "best"), [(11, "2"), (10, "1")])
def test_a_critic_of_the_seat_that_acts_counts_negatively_for_the_other(heap: int, best: str) -> None:
    game = board_games(width=8, simulations=12, moves=1)
    judged = replace(game, search=replace(game.search, evaluate=PayoffValue(evaluate=Theory())))
    moves = first_moves(play(judged, heap))
    (other,) = {"1", "2"} - {best}
    assert moves[best][0] > moves.get(other, (0, 0.0))[0]
    assert moves[best][1] > 0.5


def test_an_estimate_is_the_mean_of_as_many_games_as_asked_for() -> None:
    def turns(n: int) -> int:
        game = board_games(simulations=1, moves=1)
        return play(replace(game, search=replace(game.search, evaluate=PayoffValue(n=n))), 9).counts.turns

    assert turns(6) > 3 * turns(1)


def test_a_budget_ends_the_search_and_not_the_path_of_the_best_moves() -> None:
    tree = play(board_games(width=8, simulations=400), 5, limits=Limits(tree_turns=300))
    assert tree.counts.turns <= 300
    assert int(answered(tree)[0]) == 2
    assert len(answered(tree)) > 1


def test_values_count_for_the_seat_that_chose_the_action() -> None:
    root = SearchNode(number=0, parent=None)
    mine = SearchNode(number=1, parent=root, own=True)
    other = SearchNode(number=2, parent=mine, own=False, value=1.0)
    NegamaxBackup()(other)
    assert (root.q, mine.q, other.q) == (1.0, 1.0, -1.0)
    another = SearchNode(number=3, parent=mine, own=False, value=-1.0)
    NegamaxBackup()(another)
    assert (mine.q, mine.visits, another.q) == (0.0, 2, 1.0)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"PayoffValue\.n: got 0"):
        replace(board_games().search.evaluate, n=0)  # type: ignore[type-var]
    assert isinstance(board_games(), Commit)
