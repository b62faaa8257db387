"""Word problems of linear programs with two variables: the agent writes the model, an exact solver its verdict."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Annotated, TypeAlias, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

Row: TypeAlias = tuple[int, int, int]
"""a, b and c of a x + b y <= c; c is 0 in an objective."""

RESOURCES = ("wood", "steel", "hours", "paint")
SOLVE = "solve"


def optimum(objective: Row, rows: Sequence[Row]) -> Fraction | None:
    """The maximum of an objective over x, y >= 0 and rows; None if it has no bound or no point, exactly.

    The maximum is at a vertex, the point of two active rows. `optimum((3, 2, 0), [(1, 1, 4), (1, 0, 2)])` is 10.
    """
    every = [*rows, (-1, 0, 0), (0, -1, 0)]
    points: list[tuple[Fraction, Fraction]] = []
    for (a, b, c), (d, e, f) in combinations(every, 2):
        if det := a * e - b * d:
            points.append((Fraction(c * e - b * f, det), Fraction(a * f - c * d, det)))
    inside = [(x, y) for x, y in points if all(a * x + b * y <= c for a, b, c in every)]
    if not inside or _grows(objective, every):
        return None
    return max(objective[0] * x + objective[1] * y for x, y in inside)


def _grows(objective: Row, rows: Sequence[Row]) -> bool:
    """Whether the objective has no bound: some ray along the edge of a row stays inside all rows and raises it."""
    rays = [ray for a, b, _ in rows for ray in ((b, -a), (-b, a))]
    return any(objective[0] * x + objective[1] * y > 0 and all(a * x + b * y <= 0 for a, b, _ in rows) for x, y in rays)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearProgram:
    """The value of a state of `LinearPrograms`: the problem, and the model so far."""

    objective: Row
    rows: tuple[Row, ...]
    own_objective: Row | None = None
    own_rows: tuple[Row, ...] = ()
    turns: int = 0
    over: bool = False


@piece
class LinearPrograms:
    """Word problems of operations research, far smaller than StepORLM's (arXiv 2509.22558), with an exact verdict.

    A problem has two products x and y, a profit and limits of resources. The agent writes a model, one step a turn:

        profit 3 2. wood 1 1 limit 4. steel 1 0 limit 2.
        > max 3 2    > row 1 1 4    > row 1 0 2    > solve

    `solve` ends the episode. The solver enumerates the vertices of the agent's model in exact arithmetic. The verdict
    is success, and pays 1, when its maximum is that of the problem. A wrong model can have the right maximum, where the
    wrong row does not matter: `Step.info` of each step has "right", whether the problem has this row, for the judgement
    of steps.

    Attributes:
        resources: Number of resources, 1 to 4.
        largest: Largest coefficient, at least 2.
        patience: Number of turns after which the episode is `TRUNCATED`.

    Raises:
        ValueError: when a field is out of its range.
    """

    resources: Annotated[int, Between(1, len(RESOURCES))] = 2
    largest: Annotated[int, AtLeast(2)] = 4
    patience: int = 6
    branching = Branching.COPY

    def __post_init__(self) -> None:
        if self.patience < self.resources + 2:
            raise ValueError(
                f"LinearPrograms.patience: got {self.patience}; need at least {self.resources + 2}, resources + 2"
            )

    @property
    def instructions(self) -> str:
        """The rules."""
        return "Write the linear program: max A B, row A B LIMIT for each resource, then solve."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different problems of a split, each with a maximum.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="LinearPrograms",
            split=split,
            count=count,
            seed=seed,
            propose=self._propose,
            content=str,
            accept=lambda rows: optimum(rows[0], rows[1:]) is not None,
        )
        return [
            instance_task(
                name="lp", content=str(rows), data={"objective": [*rows[0]], "rows": [[*row] for row in rows[1:]]}
            )
            for rows in drawn
        ]

    def start(self, task: Task) -> State:
        """Returns the state with the problem.

        Raises:
            ValueError: when the task's data has no objective and rows of three whole numbers.
        """
        objective, rows = _row(task.data.get("objective")), task.data.get("rows")
        found = [*map(_row, cast("list[object]", rows))] if isinstance(rows, list | tuple) else []
        limits = tuple(row for row in found if row is not None)
        if objective is None or not 1 <= len(found) <= len(RESOURCES) or len(limits) < len(found):
            raise ValueError(
                f"LinearPrograms: task {task.id} got objective={task.data.get('objective')!r}, rows={rows!r}; need "
                f"three whole numbers, and 1 to {len(RESOURCES)} rows of them"
            )
        current = LinearProgram(objective=objective, rows=limits)
        shown = [f"{name} {a} {b} limit {c}." for name, (a, b, c) in zip(RESOURCES, limits, strict=False)]
        return _state(current, f"profit {objective[0]} {objective[1]}. {' '.join(shown)}")

    def step(self, state: State, action: str) -> Step:
        """Adds a step to the model, or solves it."""
        current = value_of(state, LinearProgram, "LinearPrograms")
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        after = replace(current, turns=current.turns + 1)
        kind, *numbers = action.strip().split() or [""]
        if kind == SOLVE and not numbers:
            truth, own = optimum(current.objective, current.rows), None
            if current.own_objective is not None:
                own = optimum(current.own_objective, current.own_rows)
            right = own is not None and own == truth
            text = "no maximum" if own is None else f"maximum {own}"
            end = _state(replace(after, over=True), text)
            return Step(state=end, reward=float(right), outcome=Outcome.TERMINATED, success=right)
        values = [int(each) for each in numbers if each.isascii() and each.isdigit() and len(each) < 5]
        right = False
        valid = len(values) == len(numbers) == {"max": 2, "row": 3}.get(kind, -1)
        if valid and kind == "max":
            after = replace(after, own_objective=(values[0], values[1], 0))
            right = after.own_objective == current.objective
        elif valid:
            row = (values[0], values[1], values[2])
            after, right = replace(after, own_rows=(*current.own_rows, row)), row in current.rows
        over = after.turns >= self.patience
        return Step(
            state=_state(replace(after, over=over), "ok" if valid else "max, row or solve"),
            outcome=Outcome.TRUNCATED if over else Outcome.OPEN,
            valid=valid,
            info={"right": right},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """The steps that are left of the problem's own model; None where a wrong row stays, or after the end."""
        current = value_of(state, LinearProgram, "LinearPrograms")
        if current.over or not {*current.own_rows} <= {*current.rows}:
            return None
        a, b, _ = current.objective
        first = () if current.own_objective == current.objective else (f"max {a} {b}",)
        rows = (f"row {a} {b} {c}" for a, b, c in current.rows if (a, b, c) not in current.own_rows)
        plan = (*first, *rows, SOLVE)
        return plan if len(plan) <= self.patience - current.turns else None

    def _propose(self, rng: random.Random) -> tuple[Row, ...]:
        objective = (rng.randint(1, self.largest), rng.randint(1, self.largest), 0)
        rows = [
            (rng.randint(0, self.largest), rng.randint(0, self.largest), rng.randint(2, 2 * self.largest))
            for _ in range(self.resources)
        ]
        return (objective, *rows)


def _row(found: object) -> Row | None:
    values = list(cast("Sequence[object]", found)) if isinstance(found, list | tuple) else []
    whole = [each for each in values if isinstance(each, int)]
    return (whole[0], whole[1], whole[2]) if len(whole) == len(values) == 3 else None


def _state(current: LinearProgram, text: str) -> State:
    key = f"{current.objective} {current.rows} {current.own_objective} {sorted(current.own_rows)} {current.over} {text}"
    return State(observation=text, key=key, value=current)
