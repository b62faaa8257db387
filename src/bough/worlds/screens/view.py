"""The screen of the phone as a picture, for the viewer."""

from typing import cast

from bough.env import Env, State
from bough.env.state_value import value_of
from bough.env.svg import LINE, MARKED, box, document, text
from bough.worlds.screens.env import Screens
from bough.worlds.screens.part import Element
from bough.worlds.screens.phone import Phone, View

SHOWN = 360
"""Width of the picture."""

COLOURS = {"button": "#dcebf5", "icon": "#e9e3f4", "tab": "#eceae3", "back": "#eceae3", "field": "#ffffff"}
ON = "#d9ead9"
"""The colour of a switch that is on, and of a tab or an option that is selected."""


def view_state(env: Env, state: State) -> str:
    """Returns the elements of the screen in their boxes, with a message of the last action below, as SVG."""
    phone, screens = value_of(state, Phone, "Screens"), cast("Screens", env)
    view = View(width=screens.width, height=screens.height, boxes=True, links=screens.links, points=screens.points)
    scale = SHOWN / view.width
    height = view.height * scale
    parts = [f'<rect width="{SHOWN}" height="{height:g}" fill="#ffffff" stroke="{LINE}"/>']
    ui = phone.screen.ui
    title = " / ".join([ui.app, *(step.removeprefix("=") for step in ui.path)]) if ui.app else "home"
    parts.append(text(title, SHOWN / 2, height / 20 + 6, anchor="middle", size=16))
    for element, (left, top, right, bottom) in zip(phone.screen.elements(), phone.boxes(view), strict=True):
        focus = element.effect == ("focus", str(ui.focus))
        place = [each * scale for each in (left, top, right - left, bottom - top)]
        parts += box(_words(element), *place, fill=_colour(element, focus=focus), bold=focus)
    if phone.note:
        parts.append(text(phone.note, 8, height + 20, size=15))
    return document(SHOWN, height + 30, parts)


def _words(element: Element) -> str:
    """The label and what stands beside it: the text of a field, or a state."""
    value = f'"{element.value}"' if element.role == "field" else element.value
    return f"{element.label}  {value}".strip() if element.role != "back" else f"← {element.label}"


def _colour(element: Element, *, focus: bool) -> str:
    if focus:
        return MARKED
    return ON if element.value in ("on", "selected") else COLOURS.get(element.role, "#fbfaf6")
