"""Decision processes small enough to enumerate, with a softmax policy, and what is exactly true of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Place: TypeAlias = tuple[Any, ...]
"""Everything that decides what can happen from here, in the words of a world."""
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """One thing that may happen after a token.

    Attributes:
        after: Where the next token is written; None when the episode ends.
        reward: What is paid.
        of: Its probability.
        ends_turn: Whether the answer is complete and the environment speaks.
    """

    after: Place | None
    reward: float = 0.0
    of: float = 1.0
    ends_turn: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a token is written.

    Attributes:
        row: Which row of logits the policy reads: places that look alike to it have one row.
        state: What the environment calls the state, above 0; the same through a turn.
        chances: For each token, what may happen.
    """

    row: int
    state: int
    chances: tuple[tuple[Chance, ...], ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """A finite process, a token at a time; every token is one of two or of three.

    Attributes:
        name: What it is called.
        says: What is particular about it.
        starts: Where an episode begins, one place for each task.
        at: From a place to its point.
        level: Which part of an answer is written at a place: "switch", "subgoal" or "action".
        seed: Of the policy's logits.
    """

    name: str
    says: str
    starts: tuple[Place, ...]
    at: Callable[[Place], Point]
    level: Callable[[Place], str] = lambda _: "action"
    seed: int = 0

    @cached_property
    def exact(self) -> "Exact":
        """The enumeration."""
        return Exact(self)


class Exact:
    """What is true of a world under its policy, by going through all that can happen.

    I points, at most A tokens at each; the policy has W rows.

    Attributes:
        places: The I places, those that come first in an episode first.
        point: [I] row numbers and state keys are in `row` and `state`.
        chance: [I, A] probability of each token.
        choices: [I] how many tokens there are.
        value: [I] mean return from here, undiscounted.
        quality: [I, A] mean return from here after the token, nan where there is none.
        visits: [I] mean number of times that an episode comes here; tasks are equally likely.
        gradient: [W, A] of the mean return, in the logits.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        points = _reachable(world)
        self.places = list(points)
        self.number = {place: number for number, place in enumerate(self.places)}
        self.points = list(points.values())
        self.row = np.asarray([point.row for point in self.points])
        self.state = np.asarray([point.state for point in self.points])
        rows, tokens = int(self.row.max()) + 1, max(len(point.chances) for point in self.points)
        self.logits = np.random.default_rng(world.seed).normal(scale=0.7, size=(rows, tokens))
        self.logits[_absent(self.points, rows, tokens)] = -np.inf
        score = np.exp(self.logits - self.logits.max(1, keepdims=True))
        self.policy = score / score.sum(1, keepdims=True)
        self.chance = self.policy[self.row]
        self.choices = np.asarray([len(point.chances) for point in self.points])
        self.value, self.quality = self.solve()
        self.visits = self._visit()
        flow = self.visits[:, None] * self.chance * np.nan_to_num(self.quality - self.value[:, None])
        self.gradient = np.zeros_like(self.policy)
        np.add.at(self.gradient, self.row, flow)

    def solve(self, discount: float = 1.0) -> tuple[Floats, Floats]:
        """[I] values and [I, A] qualities, discounted by the turn: the Bellman equations, from the last place back."""
        value, quality = np.zeros(len(self.points)), np.full(self.chance.shape, np.nan)
        for here in reversed(range(len(self.points))):
            for token, chances in enumerate(self.points[here].chances):
                quality[here, token] = sum(
                    each.of * (each.reward + self._decay(each, discount) * self._value(value, each)) for each in chances
                )
            value[here] = np.nansum(self.chance[here] * quality[here])
        return value, quality

    def turn_advantage(self, first: int, last: int, token: int) -> float:
        """Of an answer begun at one point that ends with a token at another."""
        return float(self.quality[last, token] - self.value[first])

    def shortest(self) -> int:
        """Fewest answers of an episode."""
        left = np.zeros(len(self.points), dtype=np.int64)
        for here in reversed(range(len(self.points))):
            every = [each for chances in self.points[here].chances for each in chances]
            left[here] = min(
                each.ends_turn + (0 if each.after is None else left[self.number[each.after]]) for each in every
            )
        return int(min(left[self.number[start]] for start in self.world.starts))

    def _visit(self) -> Floats:
        visits = np.zeros(len(self.points))
        for start in self.world.starts:
            visits[self.number[start]] += 1 / len(self.world.starts)
        for here, point in enumerate(self.points):
            for token, chances in enumerate(point.chances):
                for each in chances:
                    if each.after is not None:
                        visits[self.number[each.after]] += visits[here] * self.chance[here, token] * each.of
        return visits

    def _value(self, value: Floats, chance: Chance) -> float:
        return 0.0 if chance.after is None else float(value[self.number[chance.after]])

    @staticmethod
    def _decay(chance: Chance, discount: float) -> float:
        return discount if chance.ends_turn else 1.0


def _reachable(world: World) -> dict[Place, Point]:
    """Every place that can be reached, before all places that can come after it."""
    order: list[Place] = []
    points: dict[Place, Point] = {}

    def visit(place: Place) -> None:
        if place in points:
            return
        points[place] = world.at(place)
        for chances in points[place].chances:
            for each in chances:
                if each.after is not None:
                    visit(each.after)
        order.append(place)

    for start in reversed(world.starts):
        visit(start)
    return {place: points[place] for place in reversed(order)}


def _absent(points: Sequence[Point], rows: int, tokens: int) -> NDArray[np.bool_]:
    """[W, A] bool: which tokens a row does not have."""
    count = np.zeros(rows, dtype=np.int64)
    for point in points:
        count[point.row] = len(point.chances)
    return np.arange(tokens) >= count[:, None]


def _sure(after: Place | None, reward: float = 0.0, *, ends_turn: bool = True) -> tuple[Chance, ...]:
    return (Chance(after=after, reward=reward, ends_turn=ends_turn),)


def _chain(place: Place) -> Point:
    (turn,) = place
    paid = ((0.0, 1.0), (0.5, 0.0), (0.0, 0.7), (0.2, 0.0))[turn]
    after = (turn + 1,) if turn < 3 else None
    return Point(row=turn, state=turn + 1, chances=tuple(_sure(after, reward) for reward in paid))


WON = (0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1)


def _tree(place: Place) -> Point:
    """Two answers of two tokens each; the sixteen ends are won or lost."""
    history = place
    row = sum(2**level for level in range(len(history))) + int("0" + "".join(map(str, history)), 2)
    state = 1 if len(history) < 2 else 2 + int("".join(map(str, history[:2])), 2)

    def after(token: int) -> tuple[Chance, ...]:
        whole = (*history, token)
        if len(whole) == 4:
            return _sure(None, WON[int("".join(map(str, whole)), 2)])
        return _sure(whole, ends_turn=len(whole) % 2 == 0)

    return Point(row=row, state=state, chances=(after(0), after(1)))


def _loop(place: Place) -> Point:
    spot, turn = place

    def go(to: int) -> tuple[Chance, ...]:
        if to == 3:
            return _sure(None, 1.0)
        return _sure((to, turn + 1) if turn < 7 else None)

    return Point(row=spot, state=spot + 1, chances=(go(max(0, spot - 1)), go(spot + 1)))


def _stopping(place: Place) -> Point:
    (turn,) = place
    if turn == 0:  # nothing to decide yet
        return Point(row=0, state=1, chances=(_sure((1,)), _sure((1,))))
    stop = _sure(None, 0.4 * turn - 0.3)
    go = (Chance(after=(turn + 1,), of=0.75), Chance(after=None, of=0.25)) if turn < 5 else _sure(None, 0.0)
    return Point(row=turn, state=turn + 1, chances=(stop, go))


def _lengths(place: Place) -> Point:
    way, turn = place
    if way == "start":
        return Point(row=0, state=1, chances=(_sure(("short", 0)), _sure(("long", 0))))
    if way == "short":
        return Point(row=1, state=2, chances=(_sure(None, 0.2), _sure(None, 0.8)))
    after = ("long", turn + 1) if turn < 5 else None
    paid = (0.0, 0.25) if turn in (0, 5) else (0.0, 0.0)
    return Point(row=2 + turn, state=3 + turn, chances=tuple(_sure(after, reward) for reward in paid))


def _tasks(place: Place) -> Point:
    """Three answers, then success or not: in one task the first decides, in the other, which pays less, the second."""
    task, turn, good = place

    def after(token: int) -> tuple[Chance, ...]:
        right = good or (turn == task and token == 1)
        if turn < 2:
            return _sure((task, turn + 1, right))
        won = 0.8 if right else 0.2
        return (Chance(after=None, reward=(1.0, 0.2)[task], of=won), Chance(after=None, of=1 - won))

    return Point(row=turn, state=turn + 1, chances=(after(0), after(1)))


def _planner(place: Place) -> Point:
    """Fetch the key, then open the door. An answer says whether to change the aim, the aim if so, and an act."""
    key, aim, turn, level = place
    state = 1 + key
    if level == "switch":
        chances = tuple(_sure((key, aim, turn, then), ends_turn=False) for then in ("act", "subgoal"))
        return Point(row=2 * key + aim, state=state, chances=chances)
    if level == "subgoal":
        chances = tuple(_sure((key, new, turn, "action"), ends_turn=False) for new in (0, 1))
        return Point(row=4 + key, state=state, chances=chances)
    idle, found = ((has, aim, turn + 1, "switch") if turn < 4 else None for has in (key, 1))
    work = _sure(idle)
    if aim == 0 and not key:
        work = (Chance(after=found, of=0.8), Chance(after=idle, of=0.2))
    elif aim == 1 and key:
        work = _sure(None, 1.0)
    return Point(row=6 + 2 * key + aim, state=state, chances=(_sure(idle), work))


WORLDS = (
    World(
        name="chain",
        says="Four answers, each paid for at once; every path comes through the same four states.",
        starts=((0,),),
        at=_chain,
    ),
    World(
        name="tree",
        says="Two answers of two tokens; sixteen ends, won or lost; no two histories meet again.",
        starts=((),),
        at=_tree,
        seed=1,
    ),
    World(
        name="loop",
        says="Three spots and a goal, at most eight steps to and fro; a state is a spot, not the time that is left.",
        starts=((0, 0),),
        at=_loop,
        seed=2,
    ),
    World(
        name="stopping",
        says="Stop and be paid, more the later, or go on and perhaps lose all: length is chosen, luck takes part.",
        starts=((0,),),
        at=_stopping,
        seed=3,
    ),
    World(
        name="lengths",
        says="The first answer decides whether one more answer follows or six, of which two matter.",
        starts=(("start", 0),),
        at=_lengths,
        seed=4,
    ),
    World(
        name="tasks",
        says="Two tasks, one policy: one pays five times as much as the other; another answer matters in each.",
        starts=((0, 0, False), (1, 0, False)),
        at=_tasks,
        seed=5,
    ),
    World(
        name="planner",
        says="An answer keeps or changes an aim, then acts on it: up to three tokens; the aim is in no state.",
        starts=((0, 0, 0, "subgoal"),),
        at=_planner,
        level=lambda place: place[-1],
        seed=6,
    ),
)
