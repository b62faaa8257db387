"""What is measured goes into a page between two markers, so that the words around it stay."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def write(page: str, name: str, text: str) -> None:
    """Put text between `<!-- NAME -->` and `<!-- end of NAME -->` of a page.

    Raises:
        ValueError: when the page lacks them.
    """
    path = DOCS / page
    before, begin, rest = path.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not (begin and end):
        raise ValueError(f"{path}: got no markers for {name!r}; need `<!-- {name} -->` and `<!-- end of {name} -->`")
    path.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


@contextmanager
def section(name: str, *, keep: bool) -> Iterator[Callable[[str], None]]:
    """Print lines as they are said and, if they are to be kept, put them all into docs/performance.md at the end."""
    said: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        said.append(line)

    yield say
    if keep:
        write("performance.md", name, "\n".join(said))
