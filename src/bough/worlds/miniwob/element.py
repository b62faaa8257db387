"""What a page shows: a goal and a list of elements."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bough.screen.pointing import Box

Ids: TypeAlias = Literal["number", "label"]
"""How an action names an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A visible element of a page.

    Attributes:
        ref: Its number, from 1 in the order of the page.
        role: "button", "link", "field", "checkbox", "radio", "select", "tab", "text", "icon", "slider", "image", or
            the tag of a shape.
        name: Its text or label; the id or class of an element without one.
        value: The text of a field, or the selected options; None for other elements.
        options: The options of a select.
        flags: Some of "checked", "disabled", "selected", "expanded", "focused".
        box: Its place in pixels.
    """

    ref: int
    role: str
    name: str
    box: Box
    value: str | None = None
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def line(self, start: str, name: str, *, box: bool) -> str:
        """Its line in an observation, with what stands before its role, and the name to show.

        Examples:
            >>> Element(ref=2, role="field", name="user", value="ann", box=(0, 0, 9, 9)).line("2", "user", box=False)
            '2 field "user" = "ann"'
        """
        value = (f"= {quoted(self.value)}",) if self.value else ()
        options = (f"[{' | '.join(self.options)}]",) if self.options else ()
        place = (" ".join(map(str, self.box)),) if box else ()
        named = quoted(name) if name else ""
        return " ".join(filter(None, (start, self.role, named, *options, *value, *self.flags, *place)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a page shows, and whether its episode has ended.

    Attributes:
        goal: The task's text.
        elements: The visible elements in the order of the page.
        page: A hash of the page with its values, focus, caret and scrolling.
        done: Whether the page has ended the episode.
        reward: The page's reward without its time penalty, -1 to 1.
    """

    goal: str
    elements: tuple[Element, ...]
    page: str
    done: bool
    reward: float

    def text(self, ids: Ids, *, boxes: bool, note: str = "") -> str:
        """One line for each element, a note, and the goal, which is last because the action follows it."""
        if ids == "number":
            lines = [each.line(str(each.ref), each.name, box=boxes) for each in self.elements]
        else:
            names = zip(self.elements, self.labels(), strict=True)
            lines = [each.line("", label, box=boxes) for each, label in names]
        return "\n".join((*lines, *((f"note: {note}",) if note else ()), f"goal: {self.goal}"))

    def labels(self) -> tuple[str, ...]:
        """A different label for each element: its name, or its role; from the second one on with a number.

        Examples:
            Two buttons "ok" and a field without a name have the labels "ok", "ok 2" and "field 1".
        """
        seen: Counter[str] = Counter()
        taken = {each.name for each in self.elements}
        found: list[str] = []
        for each in self.elements:
            label = each.name or each.role
            seen[label] += 1
            if seen[label] > 1 or not each.name:
                while f"{label} {seen[label]}" in taken:
                    seen[label] += 1
                found.append(f"{label} {seen[label]}")
            else:
                found.append(label)
        return tuple(found)

    def id_of(self, ref: int, ids: Ids) -> str:
        """The number of an element, or its label in quotes."""
        return str(ref) if ids == "number" else quoted(self.labels()[ref - 1])

    def element(self, ref: int) -> Element | None:
        """The element with a number; None for none."""
        return self.elements[ref - 1] if 1 <= ref <= len(self.elements) else None


def quoted(text: str) -> str:
    """A text on one line in double quotes; those in it become single ones."""
    return '"' + " ".join(text.split()).replace('"', "'") + '"'


def read(row: Mapping[str, Any]) -> Reading:
    """Returns the reading that the script of the page gave."""
    return Reading(
        goal=_clean(row["goal"]),
        elements=tuple(
            Element(
                ref=ref,
                role=each["role"],
                name=_clean(each["name"]),
                value=None if each.get("value") is None else _clean(each["value"]),
                options=tuple(map(_clean, each.get("options", ()))),
                flags=tuple(each["flags"]),
                box=(each["box"][0], each["box"][1], each["box"][2], each["box"][3]),
            )
            for ref, each in enumerate(row["elements"], 1)
        ),
        page=row["page"],
        done=row["done"],
        reward=float(row["reward"]),
    )


def _clean(text: str) -> str:
    """A text without lone surrogates."""
    return text.encode(errors="replace").decode()
