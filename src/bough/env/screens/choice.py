"""A screen of options, of which one is selected."""

import random
from dataclasses import dataclass

from bough.env.screens.part import Change, Effect, Element, Job, Table, Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Options. The rows of the table are the options, each with "selected" or "".

    Attributes:
        title: Name of the part.
        options: At least two.
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

    def propose(self, template: str, table: Table, rng: random.Random) -> Wish | None:
        """See `Part.propose`."""
        return template, rng.choice([option for option, value in table if not value])

    def grant(self, table: Table, wish: Wish) -> Table:
        """See `Part.grant`."""
        if all(row[0] != wish[1] for row in table):
            raise LookupError(f"no option {wish[1]}")
        return _selected(table, wish[1])

    def text(self, wish: Wish) -> str:
        """See `Part.text`."""
        return f"set {self.title} to {wish[1]}"

    def jobs(self, table: Table, target: Table) -> tuple[Job, ...]:
        """See `Part.jobs`."""
        wanted = next(option for option, value in target if value)
        return () if (wanted, "selected") in table else (Job(path=(), clicks=(("choose", wanted),)),)


def _selected(table: Table, wanted: str) -> Table:
    return tuple((option, "selected" if option == wanted else "") for option, _ in table)
