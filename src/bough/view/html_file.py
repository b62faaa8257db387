"""An HTML file that a notebook displays inline."""

import webbrowser
from dataclasses import dataclass
from html import escape
from pathlib import Path

HEIGHT_PX = 800


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """The path of an HTML page; a notebook displays the page. `open`, `Path` and `os.fspath` accept it.

    Attributes:
        path: A self-contained page.
    """

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> bool:
        """Open the page in a browser; returns whether one was found."""
        return webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {HEIGHT_PX}px; border: 0"></iframe>'
