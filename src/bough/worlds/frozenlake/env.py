"""FrozenLake as text: cross a frozen grid to the goal without falling into a hole.

The rules are those of Gymnasium's `FrozenLake-v1`; the text rendering follows RAGEN (arXiv:2504.20073).
"""

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Annotated, TypeAlias

from bough.env.env import Branching, Split, State, Step
from bough.env.grid import ACTIONS, MOVES, Rows, canonical, find, rows_of, show
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

Cell: TypeAlias = tuple[int, int]

SHOWN = {"S": "_", "F": "_", "H": "O", "G": "G"}
STANDING = {"S": "P", "F": "P", "H": "X", "G": "*"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeState:
    """The state of an episode: the map, the agent's cell, the steps taken, and the seed of the slips."""

    rows: Rows
    cell: Cell
    steps: int
    luck: str
    slip: float = 0.0

    @property
    def letter(self) -> str:
        """The letter of the agent's cell."""
        return self.rows[self.cell[0]][self.cell[1]]


@piece
class FrozenLake:
    """A grid of ice and holes. Reaching the goal pays 1 and ends the episode; falling into a hole ends it with 0.

    The observation is the map: P is the agent, _ ice, O a hole and G the goal. At the end X is the agent in a hole
    and * the agent at the goal. The actions are left, down, right and up. A move off the map leaves the agent in place.

    Instances are sampled at random. Rotations and mirror images of a map count as the same instance: all of them
    are in one split, and at most one of them is in a list of tasks.

    Attributes:
        size: Rows and columns of the map.
        frozen: Probability that a cell is ice rather than a hole.
        slip: Probability that a move goes sideways, half to each side; "slip" in a task's data replaces it. The outcome
            is a function of the task's seed and the actions so far, so a state stays a value; the same actions slip in
            the same way.
        max_steps: The episode is `TRUNCATED` after this many actions, recognised or not.
        min_moves: Minimum number of moves from start to goal in an instance.
        corners: Whether the start is top left and the goal bottom right, as in Gymnasium, or both anywhere.

    Raises:
        ValueError: when a field is of another type, or out of its range.
    """

    size: Annotated[int, AtLeast(2, "2 or more")] = 5
    frozen: Annotated[float, Between(0, 1, "a probability above 0", above=True)] = 0.8
    slip: Annotated[float, Between(0, 1, "a probability")] = 0.0
    max_steps: int = 20
    min_moves: Annotated[int, AtLeast(1)] = 2
    corners: bool = False
    branching = Branching.COPY

    def __post_init__(self) -> None:
        if self.min_moves > self.max_steps:
            raise ValueError(f"FrozenLake.min_moves: got {self.min_moves}; need at most max_steps={self.max_steps}")

    @property
    def instructions(self) -> str:
        """The rules."""
        slippery = " Moves may slip sideways." if self.slip else ""
        return f"Move P over ice _ to goal G, not into holes O.{slippery} Answer left, down, right or up."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different solvable maps of a split.

        Raises:
            ValueError: when the split has fewer; small maps and rare holes give few different ones.
        """
        maps = draw_instances(
            name="FrozenLake",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, size=self.size, frozen=self.frozen, corners=self.corners),
            content=canonical,
            accept=self._fits,
        )
        return [instance_task(name="frozenlake", content="\n".join(rows), data={"rows": list(rows)}) for rows in maps]

    def start(self, task: Task) -> State:
        """Returns the state with the agent on S.

        Raises:
            ValueError: when `task.data["rows"]` is not a map of the letters S, F, H, G with one S and one G.
        """
        rows = rows_of(task, "FrozenLake", "SFHG")
        starts, goals = find(rows, "S"), find(rows, "G")
        if len(starts) != 1 or len(goals) != 1:
            raise ValueError(
                f"FrozenLake: task {task.id} got {len(starts)} starts S and {len(goals)} goals G; need one of each"
            )
        slip = task.data.get("slip", self.slip)
        if not isinstance(slip, int | float) or not 0 <= slip <= 1:
            raise ValueError(f"FrozenLake: task {task.id} got slip={slip!r}; need a probability")
        return _state(LakeState(rows=rows, cell=starts[0], steps=0, luck=str(task.seed), slip=slip))

    def step(self, state: State, action: str) -> Step:
        """Moves the agent. An unrecognised action costs a step and changes nothing else."""
        walk = value_of(state, LakeState, "FrozenLake")
        if walk.letter in "HG":
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False, success=walk.letter == "G")
        move = action.strip().lower()
        valid = move in MOVES
        # A text may hold lone surrogates, which UTF-8 alone cannot encode.
        mixed = f"{walk.luck} {move}".encode(errors="surrogatepass")
        luck = blake2b(mixed, digest_size=8).hexdigest() if walk.slip else walk.luck
        cell = _beside(walk.rows, walk.cell, _slid(move, luck, walk.slip)) if valid else walk.cell
        after = replace(walk, cell=cell, steps=walk.steps + 1, luck=luck)
        success = after.letter == "G"
        over = Outcome.TRUNCATED if after.steps >= self.max_steps else Outcome.OPEN
        return Step(
            state=_state(after),
            reward=float(success),
            outcome=Outcome.TERMINATED if after.letter in "HG" else over,
            valid=valid,
            success=success,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns an exact optimal plan from `state`.

        Without slips: a shortest path to the goal. With slips: a tuple of one action. It maximises the probability of
        reaching the goal within the steps left; ties go to the fewer expected steps, over fresh samples of every slip.
        None where the goal is out of reach in the steps left; the empty plan at the goal.
        """
        walk = value_of(state, LakeState, "FrozenLake")
        left = self.max_steps - walk.steps
        if walk.letter == "G":
            return ()
        if walk.letter == "H" or left <= 0:
            return None
        if not walk.slip:
            way = _shortest(walk.rows, walk.cell)
            return way if way is not None and len(way) <= left else None
        best = chances(walk.rows, walk.slip, self.max_steps)[left][walk.cell]
        return (best.action,) if best.success > 0 else None

    def _fits(self, rows: Rows) -> bool:
        way = _shortest(rows, find(rows, "S")[0])
        return way is not None and self.min_moves <= len(way) <= self.max_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """The optimum in a cell: the action, its probability of success, its expected steps to the end."""

    action: str
    success: float
    steps: float


@lru_cache(maxsize=256)
def chances(rows: Rows, slip: float, steps: int) -> tuple[Mapping[Cell, Chance], ...]:
    """Returns the optimum in every cell with 0, 1, ..., `steps` steps left, by backward value iteration.

    The order is: probability of success, then fewer expected steps until the episode ends, then action order.
    """
    table = {
        cell: Chance(action=ACTIONS[0], success=float(rows[cell[0]][cell[1]] == "G"), steps=0.0)
        for cell in find(rows, "SFHG")
    }
    ways = {cell: [_beside(rows, cell, move) for move in ACTIONS] for cell in find(rows, "SF")}
    tables = [table]
    for _ in range(steps):
        table = {**table, **{cell: _best([table[end] for end in ends], slip) for cell, ends in ways.items()}}
        tables.append(table)
    return tuple(tables)


def _best(ends: Sequence[Chance], slip: float) -> Chance:
    """Returns the best action of a cell, given the chance `ends` after a straight move, one for each action."""
    options: list[Chance] = []
    for index, action in enumerate(ACTIONS):
        shares = ((ends[index], 1 - slip), (ends[(index + 1) % 4], slip / 2), (ends[index - 1], slip / 2))
        success = sum(share * end.success for end, share in shares)
        options.append(
            Chance(action=action, success=success, steps=1 + sum(share * end.steps for end, share in shares))
        )
    # Rounded, so sums that are mathematically equal compare equal and the next criterion decides.
    return min(options, key=lambda chance: (-round(chance.success, 12), round(chance.steps, 9)))


def _state(walk: LakeState) -> State:
    letters = [[SHOWN[letter] for letter in row] for row in walk.rows]
    letters[walk.cell[0]][walk.cell[1]] = STANDING[walk.letter]
    seen = show(tuple("".join(row) for row in letters))
    return State(observation=seen, key=seen, value=walk, admissible=ACTIONS)


def _slid(move: str, luck: str, slip: float) -> str:
    """The direction of a move after its slip."""
    draw = int(luck, 16) / 2**64 if slip else 1.0
    if draw >= slip:
        return move
    # The actions are ordered counter-clockwise.
    return ACTIONS[(ACTIONS.index(move) + (1 if draw < slip / 2 else -1)) % 4]


def _beside(rows: Rows, cell: Cell, move: str) -> Cell:
    """The neighbour of a cell, or the cell itself at the edge."""
    down, right = MOVES[move]
    row, column = cell[0] + down, cell[1] + right
    return (row, column) if 0 <= row < len(rows) and 0 <= column < len(rows[0]) else cell


def _propose(rng: random.Random, *, size: int, frozen: float, corners: bool) -> Rows:
    letters = ["F" if rng.random() < frozen else "H" for _ in range(size * size)]
    start, goal = (0, size * size - 1) if corners else rng.sample(range(size * size), 2)
    letters[start], letters[goal] = "S", "G"
    return tuple("".join(letters[row * size : (row + 1) * size]) for row in range(size))


def _shortest(rows: Rows, start: Cell) -> tuple[str, ...] | None:
    ways: dict[Cell, tuple[str, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        if rows[cell[0]][cell[1]] == "G":
            return ways[cell]
        for move in ACTIONS:
            after = _beside(rows, cell, move)
            if after not in ways and rows[after[0]][after[1]] != "H":
                ways[after] = (*ways[cell], move)
                queue.append(after)
    return None
