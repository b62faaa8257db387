"""Boxes of the elements of a screen."""

from collections.abc import Sequence

from bough.screen.pointing import Box
from bough.worlds.screens.device import Theme
from bough.worlds.screens.part import Element

WIDE = ("toggle", "option", "item", "field", "text")


def boxes(elements: Sequence[Element], theme: Theme, width: int, height: int, page_rows: int) -> tuple[Box, ...]:
    """The box of each element, in pixels, (left, top, right, bottom), borders included; no two overlap.

    The back button is in a bar at the top; tabs are at the bottom. Icons are in columns, other elements in rows.

    Args:
        elements: The elements of one screen, in reading order.
        theme: The theme of the device.
        width: Width of the screen, in pixels.
        height: Height of the screen, in pixels.
        page_rows: Number of elements that fit on a page.
    """
    bar = height // 10
    row = (height - 2 * bar) // max(page_rows, 3)
    tabs = [number for number, each in enumerate(elements) if each.role == "tab"]
    found: list[Box] = []
    line = 0
    for number, each in enumerate(elements):
        if each.role == "back":
            found.append((0, 0, width // 4 - 1, bar - 1))
        elif each.role == "tab":
            share = width // len(tabs)
            left = tabs.index(number) * share
            found.append((left, height - bar, left + share - 1, height - 1))
        elif each.role == "icon":
            found.append(_icon(line, theme, width, bar, row))
            line += 1
        else:
            top = bar + line * row
            left, right = _sides(each, theme, width)
            found.append((left, top, right, top + row - 1 - row // 8))
            line += 1
    return tuple(found)


def _icon(number: int, theme: Theme, width: int, bar: int, row: int) -> Box:
    down, right = divmod(number, theme.columns)
    share = width // theme.columns
    left, top = right * share + share // 8, bar + down * row
    return left, top, left + share * 3 // 4 - 1, top + row - 1 - row // 8


def _sides(element: Element, theme: Theme, width: int) -> tuple[int, int]:
    """Left and right border of an element in a row: buttons take 2 of 5 parts of the width."""
    margin = int(theme.margin * width)
    if element.role in WIDE:
        return margin, width - 1 - margin
    wide = (width - 2 * margin) * 2 // 5
    left = margin + (width - 2 * margin - wide) * theme.side // 2
    return left, left + wide - 1
