"""The text of a content that a client sends as parts."""

from collections.abc import Iterable


class PartsText(str):
    """The parts as lines, as vLLM joins them; a chat template with a separator of its own shows them with it.

    Attributes:
        parts: The texts of the parts.
    """

    parts: tuple[str, ...]

    def __new__(cls, parts: Iterable[str]) -> "PartsText":
        """Joins the parts."""
        given = tuple(parts)
        made = super().__new__(cls, "\n".join(given))
        made.parts = given
        return made


def separated(content: str, separator: str) -> str:
    """A content with a separator between its parts; one without parts as it is."""
    return separator.join(content.parts) if isinstance(content, PartsText) else content
