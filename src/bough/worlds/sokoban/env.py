"""Sokoban as text: push every box onto a target."""

import random
from collections import deque
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

from bough.env.env import Branching, Split, State, Step
from bough.env.grid import ACTIONS, MOVES, Rows, canonical, find, put, rows_of, show
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

Cell: TypeAlias = tuple[int, int]
Layout: TypeAlias = tuple[Cell, frozenset[Cell]]
"""The cell of the player and the cells of the boxes."""

LETTERS = "#_OX*PS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The state of an episode: the room's rows and the steps taken."""

    rows: Rows
    steps: int


@piece
class Sokoban:
    """A storeroom. Solving it pays 1 and ends the episode. Boxes can be pushed, never pulled: some pushes are final.

    The observation is the room: P is the player, # a wall, _ floor, O a target, X a box, * a box on a target and S
    the player on a target. The actions are left, down, right and up. A move against a wall or a blocked box
    changes nothing.

    Instances are sampled at random. Rotations and mirror images of a room count as the same instance: all of them are
    in one split, and at most one of them is in a list of tasks.

    Attributes:
        size: Rows and columns of the room, its outer walls included.
        boxes: Number of boxes and of targets. The oracle searches all layouts, whose number grows steeply with it.
        walls: Probability that a cell inside is a wall.
        max_steps: The episode is `TRUNCATED` after this many actions, recognised or not.
        min_moves: Minimum number of moves that solve an instance.
        box_reward: Reward for each box pushed onto a target; subtracted when it leaves one.
        show_border: Whether the observation shows the outer walls, which always exist.

    Raises:
        ValueError: when a field is of another type, or out of its range.
    """

    size: int = 6
    boxes: Annotated[int, AtLeast(1)] = 1
    walls: Annotated[float, Between(0, 1, "a probability below 1", below=True)] = 0.1
    max_steps: int = 30
    min_moves: Annotated[int, AtLeast(1)] = 1
    box_reward: float = 0.0
    show_border: bool = True
    branching = Branching.COPY

    def __post_init__(self) -> None:
        inside = max(self.size - 2, 0) ** 2
        if inside < 2 * self.boxes + 1:
            raise ValueError(
                f"Sokoban: got size={self.size} and boxes={self.boxes}; need 1 or more boxes, and room for each, for "
                f"its target and for the player inside the outer walls ({inside} cells)"
            )
        if self.min_moves > self.max_steps:
            raise ValueError(f"Sokoban.min_moves: got {self.min_moves}; need at most max_steps={self.max_steps}")

    @property
    def instructions(self) -> str:
        """The rules."""
        return (
            "Push boxes X onto targets O, where they show as *. You are P, on a target S; # is wall. Answer left, "
            "down, right or up."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different solvable rooms of a split.

        Raises:
            ValueError: when the split has fewer; small rooms have few different ones.
        """
        rooms = draw_instances(
            name="Sokoban",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, size=self.size, boxes=self.boxes, walls=self.walls),
            content=canonical,
            accept=self._fits,
        )
        return [instance_task(name="sokoban", content="\n".join(rows), data={"rows": list(rows)}) for rows in rooms]

    def start(self, task: Task) -> State:
        """Returns the room's first state.

        Raises:
            ValueError: when `task.data["rows"]` is not a room with a wall around it, one player, and as many targets
                as boxes.
        """
        rows = rows_of(task, "Sokoban", LETTERS)
        players, boxes, targets = (len(find(rows, letters)) for letters in ("PS", "X*", "OS*"))
        border = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
        if players != 1 or boxes != targets or boxes == 0 or set(border) != {"#"}:
            raise ValueError(
                f"Sokoban: task {task.id} got {players} players, {boxes} boxes, {targets} targets and the border "
                f"{border!r}; need one player, as many targets as boxes, and # all around"
            )
        return self._state(Room(rows=rows, steps=0))

    def step(self, state: State, action: str) -> Step:
        """Moves or pushes. An unrecognised action costs a step and changes nothing else."""
        room = value_of(state, Room, "Sokoban")
        if _solved(room.rows):
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False, success=True)
        move = action.strip().lower()
        valid = move in MOVES
        rows = _moved(room.rows, move) if valid else room.rows
        after = Room(rows=rows, steps=room.steps + 1)
        success = _solved(rows)
        placed = len(find(rows, "*")) - len(find(room.rows, "*"))
        over = Outcome.TRUNCATED if after.steps >= self.max_steps else Outcome.OPEN
        return Step(
            state=self._state(after),
            reward=float(success) + self.box_reward * placed,
            outcome=Outcome.TERMINATED if success else over,
            valid=valid,
            success=success,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns a shortest solution, by search; None where the steps left are too few."""
        room = value_of(state, Room, "Sokoban")
        way = solve(room.rows)
        return way if way is not None and len(way) <= self.max_steps - room.steps else None

    def _state(self, room: Room) -> State:
        seen = room.rows if self.show_border else tuple(row[1:-1] for row in room.rows[1:-1])
        return State(observation=show(seen), key=show(room.rows), value=room, admissible=ACTIONS)

    def _fits(self, rows: Rows) -> bool:
        way = solve(rows)
        return way is not None and self.min_moves <= len(way) <= self.max_steps


@lru_cache(maxsize=4096)
def solve(rows: Rows) -> tuple[str, ...] | None:
    """Returns a shortest solution by breadth-first search over layouts of player and boxes; None without one.

    A box is never pushed to (or left in) a cell from which, alone in the room, it cannot reach any target.
    """
    targets, alive = frozenset(find(rows, "OS*")), _alive(rows)
    if not alive.issuperset(find(rows, "X")):
        return None
    start: Layout = (find(rows, "PS")[0], frozenset(find(rows, "X*")))
    ways: dict[Layout, tuple[Layout, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        layout = queue.popleft()
        rollout, boxes = layout
        if boxes == targets:
            return _way(ways, layout)
        for move, (down, right) in MOVES.items():
            cell = (rollout[0] + down, rollout[1] + right)
            after: Layout = (cell, boxes)
            if cell in boxes:
                beyond = (cell[0] + down, cell[1] + right)
                if beyond in boxes or beyond not in alive:
                    continue
                after = (cell, (boxes - {cell}) | {beyond})
            if rows[cell[0]][cell[1]] != "#" and after not in ways:
                ways[after] = (layout, move)
                queue.append(after)
    return None


def _way(ways: dict[Layout, tuple[Layout, str] | None], end: Layout) -> tuple[str, ...]:
    moves: list[str] = []
    while (came := ways[end]) is not None:
        end, move = came
        moves.append(move)
    return tuple(reversed(moves))


def _alive(rows: Rows) -> frozenset[Cell]:
    """Returns the cells from which a lone box can reach some target, found by pulling boxes from the targets."""
    seen = set(find(rows, "OS*"))
    queue = deque(seen)
    while queue:
        box = queue.popleft()
        for down, right in MOVES.values():
            pulled, rollout = (box[0] + down, box[1] + right), (box[0] + 2 * down, box[1] + 2 * right)
            inside = 0 <= rollout[0] < len(rows) and 0 <= rollout[1] < len(rows[0])
            if inside and pulled not in seen and "#" not in (rows[pulled[0]][pulled[1]], rows[rollout[0]][rollout[1]]):
                seen.add(pulled)
                queue.append(pulled)
    return frozenset(seen)


def _solved(rows: Rows) -> bool:
    return not find(rows, "X")


def _moved(rows: Rows, move: str) -> Rows:
    """Returns the room after a move; the same room where the move is blocked."""
    down, right = MOVES[move]
    ((row, column),) = find(rows, "PS")
    here, there, beyond = ((row + n * down, column + n * right) for n in range(3))
    into = rows[there[0]][there[1]]
    left = {"P": "_", "S": "O"}[rows[row][column]]
    if into in "_O":
        return put(rows, {here: left, there: "P" if into == "_" else "S"})
    if into in "X*" and (gives := rows[beyond[0]][beyond[1]]) in "_O":
        there_now, beyond_now = "P" if into == "X" else "S", "X" if gives == "_" else "*"
        return put(rows, {here: left, there: there_now, beyond: beyond_now})
    return rows


def _propose(rng: random.Random, *, size: int, boxes: int, walls: float) -> Rows:
    inside = [(row, column) for row in range(1, size - 1) for column in range(1, size - 1)]
    taken = rng.sample(inside, 1 + 2 * boxes)
    cells = {cell: "#" if rng.random() < walls else "_" for cell in inside}
    cells |= dict(zip(taken, "P" + "X" * boxes + "O" * boxes, strict=True))
    return put(("#" * size,) * size, cells)
