"""A screen of toggles."""

import random
from dataclasses import dataclass

from bough.worlds.screens.part import Change, Effect, Element, Request, Subtask, Table

OTHER = {"on": "off", "off": "on"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Toggles. A row of the table is a name, and "on" or "off".

    Attributes:
        title: Name of the part.
        names: Names of the toggles.
    """

    title: str
    names: tuple[str, ...]

    @property
    def templates(self) -> tuple[str, ...]:
        """Turn a toggle on or off."""
        return ("turn on", "turn off")

    def fill(self, rng: random.Random, rows: int) -> Table:
        """See `Part.fill`: up to `rows` + 1 of the toggles, in any order."""
        names = rng.sample(self.names, min(len(self.names), rows + 1))
        return tuple((name, rng.choice(("on", "off"))) for name in names)

    def draft(self, table: Table, path: tuple[str, ...]) -> None:  # noqa: ARG002
        """See `Part.draft`: no forms."""
        return

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:  # noqa: ARG002
        """See `Part.elements`."""
        return tuple(Element(role="toggle", label=name, effect=("toggle", name), value=value) for name, value in table)

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:  # noqa: ARG002
        """See `Part.act`."""
        after = tuple((name, OTHER[value] if name == effect[-1] else value) for name, value in table)
        return Change(table=after, path=path)

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:
        """See `Part.propose`."""
        names = [name for name, value in table if value != template.removeprefix("turn ")]
        return (template, rng.choice(names)) if names else None

    def fulfil(self, table: Table, request: Request) -> Table:
        """See `Part.fulfil`."""
        template, wanted = request
        if all(row[0] != wanted for row in table):
            raise LookupError(f"no toggle {wanted}")
        return tuple((name, template.removeprefix("turn ") if name == wanted else value) for name, value in table)

    def text(self, request: Request) -> str:
        """See `Part.text`."""
        return " ".join(request)

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...]:
        """See `Part.subtasks`."""
        wanted = {row[0]: row[1] for row in target}
        clicks = tuple(("toggle", name) for name, value in table if wanted[name] != value)
        return (Subtask(path=(), clicks=clicks),) if clicks else ()
