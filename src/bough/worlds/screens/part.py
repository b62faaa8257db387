"""A part of an app: a table of data, its screens, and the requests that a task can make."""

import random
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Table: TypeAlias = tuple[tuple[str, ...], ...]
"""The data of a part: rows of texts."""

Effect: TypeAlias = tuple[str, ...]
"""The effect of a click: a verb and its arguments."""

Request: TypeAlias = tuple[str, ...]
"""A change that a task requests: the name of its template, then the parameters."""

NOTHING: Effect = ("nothing",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of a screen.

    Attributes:
        role: "button", "toggle", "option", "field", "item", "tab", "icon", "back" or "text".
        label: Its text.
        effect: The effect of a click on it.
        value: Its state, such as "on", or the text in a field.
    """

    role: str
    label: str
    effect: Effect = NOTHING
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The result of an effect on a part.

    Attributes:
        table: The new data.
        path: The screen that is shown next, below the part's first screen.
        note: A message to the user; "" for none.
    """

    table: Table
    path: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """A step of the oracle's plan: go to a screen, fill its form, click.

    Attributes:
        path: The screen, below the part's first screen.
        clicks: Effects of the elements to click, in order.
        form: The final texts of the screen's form; None without a form.
    """

    path: tuple[str, ...]
    clicks: tuple[Effect, ...]
    form: tuple[str, ...] | None = None


class Part(Protocol):
    """A part of an app, as a value."""

    @property
    def title(self) -> str:
        """Its name, unique in the app."""
        ...

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates of its tasks."""
        ...

    def fill(self, rng: random.Random, rows: int) -> Table:
        """Samples its data; lists get `rows` entries."""
        ...

    def draft(self, table: Table, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The texts of a screen's form when it opens; None without a form."""
        ...

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:
        """The elements of a screen."""
        ...

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:
        """Executes an effect of one of its elements."""
        ...

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:
        """Samples parameters for a template; None where the data has none."""
        ...

    def fulfil(self, table: Table, request: Request) -> Table:
        """The data with a request fulfilled.

        Raises:
            LookupError: when the data have no row for the request.
        """
        ...

    def text(self, request: Request) -> str:
        """A request in words."""
        ...

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...] | None:
        """The subtasks that change one table into another; None where none do."""
        ...


def same(table: Table, other: Table) -> bool:
    """Whether two tables have the same rows, in any order."""
    return table == other or sorted(table) == sorted(other)
