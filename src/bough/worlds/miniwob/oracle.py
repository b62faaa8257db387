"""Scripted solutions of pages: the next action, from what the page shows and what was done."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from bough.worlds.miniwob.command import Command
from bough.worlds.miniwob.element import Element, Reading

Solver: TypeAlias = Callable[[Reading, Sequence[Command]], Command | None]
"""Returns the next action; None where it finds none."""

QUOTED = re.compile(r'"([^"]*)"')
SUBMIT = ("submit", "login", "ok", "search", "go!")


def next_action(kind: str, reading: Reading, past: Sequence[Command]) -> Command | None:
    """The next action towards the goal of a page; None without a script or a solution."""
    solver = SOLVERS.get(kind)
    return None if solver is None or reading.done else solver(reading, past)


def _click(element: Element | None) -> Command | None:
    return None if element is None else Command(verb="click", ref=element.ref)


def _named(reading: Reading, name: str, *roles: str) -> Element | None:
    """The first element with a name, of some roles."""
    return next((each for each in reading.elements if each.name == name and (not roles or each.role in roles)), None)


def _of(reading: Reading, *roles: str) -> list[Element]:
    return [each for each in reading.elements if each.role in roles]


def _submit(reading: Reading) -> Command | None:
    buttons = (each for each in _of(reading, "button", "link") if each.name.lower() in SUBMIT)
    return _click(next(buttons, None))


def _fill(reading: Reading, texts: Sequence[tuple[Element | None, str]]) -> Command | None:
    """Types the first text that its field does not have; then submits."""
    for element, text in texts:
        if element is None:
            return None
        if element.value != text:
            return Command(verb="type", ref=element.ref, text=text)
    return _submit(reading)


def _first(reading: Reading, past: Sequence[Command]) -> Command | None:
    """Clicks the first button or field."""
    del past
    return _click(next(iter(_of(reading, "button", "field")), None))


def _quoted(reading: Reading, past: Sequence[Command]) -> Command | None:
    """Clicks what the goal has in quotes."""
    del past
    found = QUOTED.search(reading.goal)
    return _click(_named(reading, found[1], "button", "link")) if found else None


def _sequence(reading: Reading, past: Sequence[Command]) -> Command | None:
    return _click(_named(reading, "TWO" if past else "ONE"))


def _dialog(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    found = QUOTED.search(reading.goal)
    return _click(_named(reading, "Close" if found is None or found[1] == "x" else found[1], "button"))


def _tab(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    found = re.search(r"Tab #\d", reading.goal)
    return _click(_named(reading, found[0], "tab")) if found else None


def _behind_tabs(reading: Reading, past: Sequence[Command]) -> Command | None:
    """Clicks the link in quotes; where it is hidden, opens the tabs or sections from the first to the last."""
    if (found := _quoted(reading, past)) is not None:
        return found
    tabs = _of(reading, "tab")
    shown = next((place for place, tab in enumerate(tabs) if {"selected", "expanded"} & {*tab.flags}), -1)
    begun = bool(past)
    return _click(tabs[(shown + 1 if begun else 0 if shown else 1) % len(tabs)]) if tabs else None


def _section(reading: Reading, past: Sequence[Command]) -> Command | None:
    tab = next(iter(_of(reading, "tab")), None)
    opened = past or (tab is not None and "expanded" in tab.flags)
    return _submit(reading) if opened else _click(tab)


def _widget(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    found = QUOTED.search(reading.goal)
    role = {"text": "field"}.get(found[1], found[1]) if found else ""
    return _click(next(iter(_of(reading, role)), None))


def _listed(goal: str) -> list[str]:
    """The names of a goal such as "Select a, b and click Submit."."""
    found = re.match(r"Select (.*?) (?:from the (?:scroll )?list )?and click Submit", goal)
    return [name for name in re.split(r", ", found[1]) if name != "nothing"] if found else []


def _boxes(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    wanted = _listed(reading.goal)
    for box in _of(reading, "checkbox", "radio"):
        if (box.name in wanted) != ("checked" in box.flags) and (box.role == "checkbox" or box.name in wanted):
            return _click(box)
    return _submit(reading)


def _list(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    box = next(iter(_of(reading, "select")), None)
    found = re.match(r"Select (.*) from the list and click Submit", reading.goal)
    if box is None or found is None:
        return None
    return _submit(reading) if box.value == found[1] else Command(verb="select", ref=box.ref, text=found[1])


def _scroll_list(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    box = next(iter(_of(reading, "select")), None)
    if box is None:
        return None
    chosen = set(filter(None, (box.value or "").split(", ")))
    wrong = sorted(chosen ^ {*_listed(reading.goal)})
    return Command(verb="select", ref=box.ref, text=wrong[0]) if wrong else _submit(reading)


def _focus(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    found = re.search(r"(\d+)(?:st|nd|rd|th)", reading.goal)
    fields = _of(reading, "field")
    return _click(fields[int(found[1]) - 1]) if found and int(found[1]) <= len(fields) else None


def _text(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    found = QUOTED.search(reading.goal)
    if found is None:
        return None
    text = found[1]
    text = text.upper() if "all upper case" in reading.goal else text
    text = text.lower() if "all lower case" in reading.goal else text
    return _fill(reading, [(field, text) for field in _of(reading, "field")])


def _login(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    if cancel := _named(reading, "Cancel", "button"):
        return _click(cancel)
    texts, fields = QUOTED.findall(reading.goal), _of(reading, "field")
    return _fill(reading, list(zip(fields, texts, strict=False))) if len(fields) == len(texts) == 2 else None


def _typed(pattern: str, stored: Callable[[str], str]) -> Solver:
    """Types the part of the goal that matches; `stored` is how the field then shows it."""

    def solve(reading: Reading, past: Sequence[Command]) -> Command | None:
        del past
        found, field = re.search(pattern, reading.goal), next(iter(_of(reading, "field")), None)
        if found is None or field is None:
            return None
        if field.value in (found[0], stored(found[0])):
            return _submit(reading)
        return Command(verb="type", ref=field.ref, text=found[0])

    return solve


def _iso_date(text: str) -> str:
    month, day, year = text.split("/")
    return f"{year}-{month}-{day}"


def _day_time(text: str) -> str:
    hour, minute, half = re.split(r"[: ]", text)
    return f"{int(hour) % 12 + (12 if half == 'PM' else 0):02d}:{minute}"


def _sum(reading: Reading, past: Sequence[Command]) -> Command | None:
    del past
    shown = " ".join(each.name for each in _of(reading, "text"))
    found = re.search(r"(\d+) ([-+x*]) (\d+) =", shown)
    if found is None:
        return None
    one, two = int(found[1]), int(found[3])
    answer = {"+": one + two, "-": one - two}.get(found[2], one * two)
    return _fill(reading, [(next(iter(_of(reading, "field")), None), str(answer))])


def _table(reading: Reading, past: Sequence[Command]) -> Command | None:
    """Types the value of each label; a field without a label takes the label of the goal."""
    del past
    names = [each.name for each in _of(reading, "text")]
    values = dict(zip(names[::2], names[1::2], strict=False))
    found = re.search(r"value of (.*) into", reading.goal)
    labels = [(field, found[1] if found else field.name.rstrip(":")) for field in _of(reading, "field")]
    return _fill(reading, [(field, values.get(label, "")) for field, label in labels])


SOLVERS: Mapping[str, Solver] = {
    "choose-list": _list,
    "click-button": _quoted,
    "click-button-sequence": _sequence,
    "click-checkboxes": _boxes,
    "click-checkboxes-large": _boxes,
    "click-checkboxes-transfer": _boxes,
    "click-collapsible": _section,
    "click-collapsible-2": _behind_tabs,
    "click-dialog": _dialog,
    "click-dialog-2": _dialog,
    "click-link": _quoted,
    "click-option": _boxes,
    "click-scroll-list": _scroll_list,
    "click-tab": _tab,
    "click-tab-2": _behind_tabs,
    "click-tab-2-easy": _behind_tabs,
    "click-tab-2-hard": _behind_tabs,
    "click-tab-2-medium": _behind_tabs,
    "click-test": _first,
    "click-test-2": _sequence,
    "click-widget": _widget,
    "enter-date": _typed(r"\d\d/\d\d/\d{4}", _iso_date),
    "enter-password": _text,
    "enter-text": _text,
    "enter-text-2": _text,
    "enter-text-dynamic": _text,
    "enter-time": _typed(r"\d+:\d\d [AP]M", _day_time),
    "focus-text": _first,
    "focus-text-2": _focus,
    "login-user": _login,
    "login-user-popup": _login,
    "read-table": _table,
    "read-table-2": _table,
    "simple-arithmetic": _sum,
    "unicode-test": _quoted,
}
"""By page. The pages without a script have no oracle."""
