"""Pictures of states as SVG: a grid of cells, a list of lines, boxes with texts, and tables."""

from collections.abc import Mapping, Sequence
from html import escape

PAPER, INK, LINE = "#fbfaf6", "#22262b", "#c9c5ba"
MARKED = "#fff3c9"
CELL, TEXT, LETTERS = 40, 22, 20
WIDTH_OF_LETTER = 0.56
"""Mean width of a letter, as a multiple of the size of letters."""


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
                parts.append(text(mark, x + CELL / 2, y + CELL / 2 + 8, anchor="middle"))
    return document(CELL * max(map(len, rows)), CELL * len(rows), parts)


def lines(texts: Sequence[tuple[str, bool]], width: int = 320) -> str:
    """Lines of text with a box each, ticked or empty."""
    parts = [text(f"{'☑' if ticked else '☐'} {each}", 12, TEXT * (at + 1)) for at, (each, ticked) in enumerate(texts)]
    return document(width, TEXT * (len(texts) + 1), parts)


def document(width: float, height: float, parts: Sequence[str]) -> str:
    """An SVG document with its own background."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{"".join(parts)}</svg>'
    )


def text(words: str, x: float, y: float, anchor: str = "start", size: float = LETTERS) -> str:
    """A line of text whose baseline begins at a point, or has its middle there."""
    style = f'font-family="sans-serif" font-size="{size:g}" fill="{INK}" text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def box(
    words: str,
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str = PAPER,
    bold: bool = False,
    size: float = 15,
) -> list[str]:
    """A box with a line of text, which is cut where the box ends.

    Args:
        words: The text.
        x: Left end, as y the upper end.
        y: Upper end.
        width: Its width.
        height: Its height.
        fill: Its colour.
        bold: Whether its border is thick.
        size: Size of the letters.
    """
    border = f'stroke="{INK if bold else LINE}" stroke-width="{2 if bold else 1}"'
    rect = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" {border}/>'
    return [rect, text(cut(words, width - 16, size), x + 8, y + height / 2 + size / 3, size=size)]


def cut(words: str, width: float, size: float) -> str:
    """A text that is cut to fit into a width, by the mean width of letters."""
    most = max(1, int(width / (size * WIDTH_OF_LETTER)))
    return words if len(words) <= most else f"{words[: most - 1]}…"
