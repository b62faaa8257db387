"""The value of a state: the screen, the target, and the effects of actions on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Literal

from bough.env.splits import content_hash
from bough.screen.pointing import Box, Point, Pointing, centre, inside
from bough.worlds.screens.command import Command
from bough.worlds.screens.device import Place
from bough.worlds.screens.layout import boxes
from bough.worlds.screens.oracle import Move, solve
from bough.worlds.screens.part import Element, Table, same
from bough.worlds.screens.ui import Screen


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The settings of the display and of ids.

    Attributes:
        width: Width of the screen, in pixels.
        height: Height of the screen, in pixels.
        boxes: Whether the observation has the box of each element.
        links: Whether the action `open` is available.
        points: Whether the oracle clicks points in place of ids.
        ids: "number": the ids of elements count from 1. "label": they are the labels, with "-" for blanks.
        click: The form of the oracle's clicks by coordinates: "point", "box" or "points".
    """

    width: int
    height: int
    boxes: bool
    links: bool
    points: bool
    ids: Literal["number", "label"] = "number"
    click: Literal["point", "box", "points"] = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phone:
    """The value of a state of `Screens`: a phone in use.

    Attributes:
        screen: The data, and the screen that is shown.
        prompt: The task in words.
        target: The data to reach, the parts of the requests first.
        goals: Number of requests, each in another part.
        steps: Number of actions so far.
        note: A message of the last action; "" for none.
        over: Whether the episode has ended.
    """

    screen: Screen
    prompt: str
    target: Mapping[Place, Table]
    goals: int
    steps: int = 0
    note: str = ""
    over: bool = False

    def reached(self) -> int:
        """The number of fulfilled requests."""
        return sum(same(self.screen.data[place], self.target[place]) for place in [*self.target][: self.goals])

    def solved(self) -> bool:
        """Whether the data are those of the target, all other parts included."""
        return all(same(self.screen.data[place], table) for place, table in self.target.items())

    def key(self) -> str:
        """Equal keys mean equal prompts, data and screens."""
        return content_hash(f"{self.prompt}\n{self.screen.ui}\n{[*self.screen.data.items()]}\n{self.over}")

    def boxes(self, view: View) -> tuple[Box, ...]:
        """The box of each visible element."""
        screen = self.screen
        return boxes(screen.elements(), screen.device.theme, view.width, view.height, screen.page_rows)

    def ids(self, view: View) -> tuple[str, ...]:
        """The id of each visible element; a label that occurs again is numbered."""
        if view.ids == "number":
            return tuple(str(number) for number in range(1, len(self.screen.elements()) + 1))
        found: dict[str, None] = {}
        for each in self.screen.elements():
            label = "-".join(each.label.split()) or "-"
            again = (f"{label}-{number}" for number in count(2))
            found[next(name for name in chain([label], again) if name not in found)] = None
        return tuple(found)

    def text(self, view: View) -> str:
        """The observation."""
        ui = self.screen.ui
        place = " ".join([ui.app, *(step.removeprefix("=") for step in ui.path)]) if ui.app else "home"
        lines = [f"task: {self.prompt}", f"screen: {place}"]
        shown, pages = self.screen.shown()
        if pages > 1:
            lines.append(f"page {ui.page + 1} of {pages}")
        if self.note:
            lines.append(f"note: {self.note}")
        placed = self.boxes(view) if view.boxes else (None,) * len(shown)
        for name, each, box in zip(self.ids(view), shown, placed, strict=True):
            label = each.label if view.ids == "number" else ""
            words = [name, each.role, label, self._value(each), *(map(str, box) if box else ())]
            lines.append(" ".join(filter(None, words)))
        return "\n".join(lines)

    def _value(self, element: Element) -> str:
        if element.role != "field":
            return element.value
        focus = " focus" if element.effect == ("focus", str(self.screen.ui.focus)) else ""
        return f'"{element.value}"{focus}'

    def clicked(self, command: Command, view: View) -> int | None:
        """The number of the element that a click hits, from 0; None for none."""
        shown = self.boxes(view)
        if not command.points:
            ids = self.ids(view)
            return ids.index(command.text) if command.text in ids else None
        return next((number for number, box in enumerate(shown) if inside(command.points[0], box)), None)

    def after(self, command: Command, view: View) -> "tuple[Phone, bool]":
        """The phone after an action other than "done", and whether the action was possible."""
        screen, note = self._moved(command, view)
        if screen is None:
            return replace(self, steps=self.steps + 1, note=note), False
        return replace(self, screen=screen, steps=self.steps + 1, note=note), True

    def _moved(self, command: Command, view: View) -> tuple[Screen | None, str]:
        """The screen after an action, and a message; None for an action that is not possible."""
        screen, verb, text = self.screen, command.verb, command.text
        if verb == "click":
            number = self.clicked(command, view)
            if number is None:
                where = " ".join(map(str, command.points[0])) if command.points else f"id {text}"
                return None, f"nothing at {where}"
            return screen.after(screen.elements()[number].effect)
        if verb == "type":
            return screen.typed(text), "" if screen.typed(text) else "no field has the focus"
        if verb == "open":
            known = view.links and text in screen.device.apps
            return screen.after(("open", text)) if known else (None, f"no app {text}")
        if verb == "scroll":
            if screen.pages() == 1:
                return None, "nothing to scroll"
            return screen.after(("page", "1" if text == "down" else "-1"))
        return (screen.waited(), "") if verb == "wait" else screen.after((verb,))

    def plan(self, view: View) -> tuple[Move, ...] | None:
        """The oracle's moves; None where no moves lead to the target."""
        return solve(self.screen, self.target, links=view.links)

    def lines(self, moves: tuple[Move, ...], view: View) -> tuple[tuple[str, Pointing], ...]:
        """The oracle's moves as actions, each with its target."""
        phone, found = self, list[tuple[str, Pointing]]()
        for move in moves:
            line, pointing = phone.line(move, view)
            found.append((line, pointing))
            phone = replace(phone, screen=phone.follow(move))
        return tuple(found)

    def line(self, move: Move, view: View) -> tuple[str, Pointing]:
        """A move as an action on the present screen."""
        screen = (view.width, view.height)
        if not move.effect:
            line = f"{move.verb} {move.text}" if move.text else move.verb
            return line, Pointing(kind="", target_kind=move.verb, screen=screen)
        number = [each.effect for each in self.screen.elements()].index(move.effect)
        box = self.boxes(view)[number]
        name, point = self.ids(view)[number], centre(box)
        verb, numbers = {"box": ("box", box), "points": ("points", point)}.get(view.click, ("click", point))
        line = " ".join([verb, *map(str, numbers)]) if view.points else f"click {name}"
        return line, Pointing(kind="", target_kind="click", target=name, target_box=box, screen=screen)

    def follow(self, move: Move) -> Screen:
        """The screen after a move of the oracle."""
        screen = self.screen
        if move.verb == "type":
            return screen.typed(move.text) or screen
        if move.verb == "wait":
            return screen.waited()
        effect = {"scroll": ("page", "1" if move.text == "down" else "-1"), "open": ("open", move.text)}
        return screen.after(move.effect or effect.get(move.verb, (move.verb,)))[0]

    def points_of(self, command: Command | None, view: View) -> tuple[Point, ...]:
        """The points of an action; of a click by id the centre of the element."""
        if command is None or command.verb != "click":
            return ()
        number = self.clicked(command, view) if not command.points else None
        return command.points if number is None else (centre(self.boxes(view)[number]),)
