"""A list of sent entries, which cannot be taken back."""

import random
from collections import Counter
from dataclasses import dataclass

from bough.worlds.screens.form import Field, form_elements, form_problem
from bough.worlds.screens.part import Change, Effect, Element, Request, Subtask, Table

NEW = ("new",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """Entries that are sent by a form and cannot be taken back. A row of the table has the texts of the fields.

    Attributes:
        title: Name of the part.
        noun: Word for an entry, such as "mail".
        fields: The fields of the form.
    """

    title: str
    noun: str
    fields: tuple[Field, ...]

    @property
    def templates(self) -> tuple[str, ...]:
        """Send an entry."""
        return ("send",)

    def fill(self, rng: random.Random, rows: int) -> Table:
        """See `Part.fill`: at most two entries were sent."""
        return tuple(tuple(field.draw(rng) for field in self.fields) for _ in range(rng.randint(0, min(2, rows))))

    def draft(self, table: Table, path: tuple[str, ...]) -> tuple[str, ...] | None:  # noqa: ARG002
        """See `Part.draft`."""
        return ("",) * len(self.fields) if path == NEW else None

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:
        """See `Part.elements`."""
        if path == NEW and form is not None:
            return form_elements(self.fields, form, "send")
        sent = [Element(role="text", label=" ".join(row)) for row in table]
        return (Element(role="button", label="new", effect=("go", *NEW)), *sent)

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:  # noqa: ARG002
        """See `Part.act`."""
        problem = "no form" if form is None else form_problem(self.fields, form)
        if problem or form is None:
            return Change(table=table, path=path, note=problem)
        return Change(table=(*table, form), path=())

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:  # noqa: ARG002
        """See `Part.propose`."""
        return (template, *(field.draw(rng) for field in self.fields))

    def fulfil(self, table: Table, request: Request) -> Table:
        """See `Part.fulfil`."""
        return (*table, request[1:])

    def text(self, request: Request) -> str:
        """See `Part.text`."""
        given = " ".join(f"{field.name} {text}" for field, text in zip(self.fields, request[1:], strict=True))
        return f"send {self.noun} {given}"

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...] | None:
        """See `Part.subtasks`: None when an entry was sent that is not in the target."""
        if Counter(table) - Counter(target):
            return None
        missing = (Counter(target) - Counter(table)).elements()
        return tuple(Subtask(path=NEW, clicks=(("save",),), form=row) for row in missing)
