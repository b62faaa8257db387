"""A list of entries with fields: created, edited, marked and deleted."""

import random
from dataclasses import dataclass

from bough.worlds.screens.form import LONGEST, Field, form_elements, form_problem
from bough.worlds.screens.part import Change, Effect, Element, Request, Subtask, Table

NEW, EDIT = "new", "edit"
DELETE: Effect = ("delete",)
OTHER = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Entries. A row has the texts of the fields, then "yes" or "no" for the mark; the first field names the entry.

    Attributes:
        title: Name of the part.
        noun: Word for an entry, such as "note".
        fields: The fields of the form; texts of the first one are unique.
        mark: A flag of each entry, such as "pinned"; "" without one.
        writable: Whether entries can be created and edited.
    """

    title: str
    noun: str
    fields: tuple[Field, ...]
    mark: str = ""
    writable: bool = True

    @property
    def templates(self) -> tuple[str, ...]:
        """Create, edit, rename, delete, mark or unmark an entry, as far as the part allows."""
        edits = ("create", "rename", *(["edit"] if len(self.fields) > 1 else [])) if self.writable else ()
        return (*edits, "delete", *(("mark", "unmark") if self.mark else ()))

    def fill(self, rng: random.Random, rows: int) -> Table:
        """See `Part.fill`."""
        named: dict[str, tuple[str, ...]] = {}
        while len(named) < rows:
            row = (*(field.draw(rng) for field in self.fields), *([rng.choice(("yes", "no"))] if self.mark else []))
            named.setdefault(row[0], row)
        return tuple(named.values())

    def draft(self, table: Table, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """See `Part.draft`: empty for a new entry, the texts of one that is edited."""
        if path == (NEW,):
            return ("",) * len(self.fields)
        return self._texts(_row(table, path[0])) if path[1:] == (EDIT,) else None

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:
        """See `Part.elements`."""
        if form is not None:
            return form_elements(self.fields, form, "save")
        if not path:
            new = [Element(role="button", label="new", effect=("go", NEW))] if self.writable else []
            return (*new, *(Element(role="item", label=row[0], effect=("go", _item(row[0]))) for row in table))
        row = _row(table, path[0])
        texts = [
            Element(role="text", label=field.name, value=text) for field, text in zip(self.fields, row, strict=False)
        ]
        edit = [Element(role="button", label="edit", effect=("go", path[0], EDIT))] if self.writable else []
        mark = [Element(role="toggle", label=self.mark, effect=("mark",), value=row[-1])] if self.mark else []
        return (*texts, *mark, *edit, Element(role="button", label="delete", effect=("ask", *DELETE)))

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:
        """See `Part.act`."""
        if effect == ("save",) and form is not None:
            return self._save(table, path, form)
        name = path[0].removeprefix("=")
        if effect == DELETE:
            return Change(table=tuple(row for row in table if row[0] != name), path=())
        after = tuple((*row[:-1], OTHER[row[-1]]) if row[0] == name else row for row in table)
        return Change(table=after, path=path)

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:
        """See `Part.propose`."""
        texts = tuple(field.draw(rng) for field in self.fields)
        names = [row[0] for row in table]
        if template == "create":
            return (template, *texts) if texts[0] not in names else None
        if template in ("mark", "unmark"):
            names = [row[0] for row in table if row[-1] == ("no" if template == "mark" else "yes")]
        if not names:
            return None
        name = rng.choice(names)
        if template == "rename":
            return (template, name, texts[0]) if texts[0] not in names else None
        if template == "edit":
            number = rng.randrange(1, len(self.fields))
            changed = texts[number] != _row(table, _item(name))[number]
            return (template, name, self.fields[number].name, texts[number]) if changed else None
        return template, name

    def fulfil(self, table: Table, request: Request) -> Table:
        """See `Part.fulfil`."""
        template, name, *rest = request
        if template == "create":
            return (*table, (name, *rest, *(["no"] if self.mark else [])))
        changed = list(_row(table, _item(name)))
        if template == "delete":
            return tuple(row for row in table if row[0] != name)
        if template == "rename":
            changed[0] = rest[0]
        elif template == "edit":
            changed[[field.name for field in self.fields].index(rest[0])] = rest[1]
        else:
            changed[-1] = "yes" if template == "mark" else "no"
        return tuple(tuple(changed) if row[0] == name else row for row in table)

    def text(self, request: Request) -> str:
        """See `Part.text`."""
        template, name, *rest = request
        if template == "create":
            given = " ".join(f"{field.name} {text}" for field, text in zip(self.fields, request[1:], strict=True))
            return f"create {self.noun} {given}"
        about = {
            "rename": f"rename {self.noun} {name} to {rest[-1] if rest else ''}",
            "edit": f"edit {self.noun} {name} {' to '.join(rest)}",
            "delete": f"delete {self.noun} {name}",
        }
        return about.get(template, f"{template} {self.noun} {name} {self.mark}")

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...] | None:
        """See `Part.subtasks`: None where it would need an edit of entries that cannot be edited."""
        now, then = {row[0]: row for row in table}, {row[0]: row for row in target}
        extra, missing = [name for name in now if name not in then], [name for name in then if name not in now]
        renamed = dict(zip(extra, missing, strict=False)) if self.writable else {}
        subtasks: list[Subtask] = []
        for name, row in now.items():
            goal = then.get(renamed.get(name, name))
            if goal is None:
                subtasks.append(Subtask(path=(_item(name),), clicks=(("ask", *DELETE), ("yes",))))
                continue
            if self.mark and goal[-1] != row[-1]:
                subtasks.append(Subtask(path=(_item(name),), clicks=(("mark",),)))
            if self._texts(goal) != self._texts(row):
                subtasks.append(Subtask(path=(_item(name), EDIT), clicks=(("save",),), form=self._texts(goal)))
        for name in missing[len(renamed) :]:
            subtasks.append(Subtask(path=(NEW,), clicks=(("save",),), form=self._texts(then[name])))
            if self.mark and then[name][-1] == "yes":
                subtasks.append(Subtask(path=(_item(name),), clicks=(("mark",),)))
        wrong = not self.writable and any(subtask.form for subtask in subtasks)
        return None if wrong else tuple(subtasks)

    def _save(self, table: Table, path: tuple[str, ...], form: tuple[str, ...]) -> Change:
        old = "" if path == (NEW,) else path[0].removeprefix("=")
        taken = any(row[0] == form[0] != old for row in table)
        problem = form_problem(self.fields, form) or (f"{form[0][:LONGEST]} exists" if taken else "")
        if problem:
            return Change(table=table, path=path, note=problem)
        if not old:
            return Change(table=(*table, (*form, *(["no"] if self.mark else []))), path=())
        after = tuple((*form, *row[len(form) :]) if row[0] == old else row for row in table)
        return Change(table=after, path=(_item(form[0]),))

    def _texts(self, row: tuple[str, ...]) -> tuple[str, ...]:
        return row[: len(self.fields)]


def _item(name: str) -> str:
    """The step of a path to an entry: no entry has the name of a form."""
    return f"={name}"


def _row(table: Table, item: str) -> tuple[str, ...]:
    return next(row for row in table if _item(row[0]) == item)
