"""A screen of options, of which one is selected."""

import random
from dataclasses import dataclass

from bough.worlds.screens.part import Change, Effect, Element, Request, Subtask, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Options. The rows of the table are the options, each with "selected" or "".

    Attributes:
        title: Name of the part.
        options: The options, at least two.
    """

    title: str
    options: tuple[str, ...]

    @property
    def templates(self) -> tuple[str, ...]:
        """Select an option."""
        return ("choose",)

    def fill(self, rng: random.Random, rows: int) -> Table:
        """See `Part.fill`: up to `rows` + 1 of the options, in any order."""
        options = rng.sample(self.options, min(len(self.options), rows + 1))
        return _selected(tuple((option, "") for option in options), rng.choice(options))

    def draft(self, table: Table, path: tuple[str, ...]) -> None:  # noqa: ARG002
        """See `Part.draft`: no forms."""
        return

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:  # noqa: ARG002
        """See `Part.elements`."""
        return tuple(
            Element(role="option", label=option, effect=("choose", option), value=value) for option, value in table
        )

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:  # noqa: ARG002
        """See `Part.act`."""
        return Change(table=_selected(table, effect[-1]), path=path)

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:
        """See `Part.propose`."""
        return template, rng.choice([option for option, value in table if not value])

    def fulfil(self, table: Table, request: Request) -> Table:
        """See `Part.fulfil`."""
        if all(row[0] != request[1] for row in table):
            raise LookupError(f"no option {request[1]}")
        return _selected(table, request[1])

    def text(self, request: Request) -> str:
        """See `Part.text`."""
        return f"set {self.title} to {request[1]}"

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...]:
        """See `Part.subtasks`."""
        wanted = next(option for option, value in target if value)
        return () if (wanted, "selected") in table else (Subtask(path=(), clicks=(("choose", wanted),)),)


def _selected(table: Table, wanted: str) -> Table:
    return tuple((option, "selected" if option == wanted else "") for option, _ in table)
