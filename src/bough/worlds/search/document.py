"""Documents of a corpus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document. Its number is its place in the corpus.

    Attributes:
        title: One line.
        text: The text below it.
    """

    title: str
    text: str
