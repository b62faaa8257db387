"""Pictures of states as SVG: a grid of cells, and a list of lines."""

from collections.abc import Mapping, Sequence
from html import escape

PAPER, INK, LINE = "#fbfaf6", "#22262b", "#c9c5ba"
CELL, TEXT = 40, 22


def grid(rows: Sequence[str], cells: Mapping[str, tuple[str, str]]) -> str:
    """A grid of letters, each cell with a colour and a mark.

    Args:
        rows: The letters of each row.
        cells: By letter, the colour of the cell and the text in it.
    """
    parts: list[str] = []
    for down, row in enumerate(rows):
        for right, letter in enumerate(row):
            colour, mark = cells[letter]
            x, y = right * CELL, down * CELL
            parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour}" stroke="{LINE}"/>')
            if mark:
                parts.append(_text(mark, x + CELL / 2, y + CELL / 2 + 8, anchor="middle"))
    return document(CELL * max(map(len, rows)), CELL * len(rows), parts)


def lines(texts: Sequence[tuple[str, bool]], width: int = 320) -> str:
    """Lines of text with a box each, ticked or empty."""
    parts = [_text(f"{'☑' if ticked else '☐'} {text}", 12, TEXT * (at + 1)) for at, (text, ticked) in enumerate(texts)]
    return document(width, TEXT * (len(texts) + 1), parts)


def document(width: float, height: float, parts: Sequence[str]) -> str:
    """An SVG document with its own background."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{"".join(parts)}</svg>'
    )


def _text(text: str, x: float, y: float, anchor: str = "start") -> str:
    style = f'font-family="sans-serif" font-size="20" fill="{INK}" text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>'
