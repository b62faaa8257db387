"""Shared code of grid environments: moves, rendering of rows, and symmetries of maps."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from bough.tree import Task

Rows: TypeAlias = tuple[str, ...]
"""A map: one string per row, one letter per cell."""

MOVES: Mapping[str, tuple[int, int]] = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
"""The change of (row, column) by each action."""

ACTIONS: tuple[str, ...] = tuple(MOVES)


def show(rows: Rows) -> str:
    """Renders a map for the agent: one row per line, cells separated by spaces."""
    return "\n".join(" ".join(row) for row in rows)


def canonical(rows: Rows) -> str:
    """Returns a canonical form: equal exactly for a map and its rotations and mirror images."""
    turned = tuple("".join(column) for column in zip(*rows, strict=True))
    images: list[str] = []
    for image in (rows, turned):
        mirrored = tuple(row[::-1] for row in image)
        images.extend("\n".join(side) for side in (image, image[::-1], mirrored, mirrored[::-1]))
    return min(images)


def find(rows: Rows, letters: str) -> tuple[tuple[int, int], ...]:
    """Returns the cells, as (row, column), with one of `letters`, in reading order."""
    return tuple((r, c) for r, row in enumerate(rows) for c, letter in enumerate(row) if letter in letters)


def put(rows: Rows, cells: Mapping[tuple[int, int], str]) -> Rows:
    """Returns the map with some cells replaced."""
    return tuple(
        "".join(cells.get((r, c), letter) for c, letter in enumerate(row)) if any(r == at[0] for at in cells) else row
        for r, row in enumerate(rows)
    )


def rows_of(task: Task, name: str, letters: str) -> Rows:
    """Returns the map in `task.data["rows"]`.

    Raises:
        ValueError: when it is missing, or is not a rectangle of `letters`.
    """
    need = f"a list of equally long strings of the letters {letters!r}"
    given = task.data.get("rows")
    if not isinstance(given, list | tuple):
        raise ValueError(f"{name}: task {task.id} got data['rows'] = {given!r}; need {need}")
    rows = cast("Sequence[object]", given)
    texts = tuple(row for row in rows if isinstance(row, str))
    widths = {len(row) for row in texts}
    if len(texts) != len(rows) or len(widths) != 1 or not set("".join(texts)) <= set(letters) or "" in texts:
        raise ValueError(f"{name}: task {task.id} got data['rows'] = {given!r}; need {need}")
    return texts
