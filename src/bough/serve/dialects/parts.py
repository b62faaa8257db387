"""The parts of a message's content, and their text."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

from pydantic import Field, Tag

from bough.serve.parts_text import PartsText
from bough.serve.request import BY_TYPE, MOST_PARTS, Fields, tag_of


class HasText(Protocol):
    """A part with a text."""

    @property
    def text(self) -> str:
        """The text."""
        ...


class TextPart(Fields):
    """A part with a text, of OpenAI's APIs."""

    ignored: ClassVar[frozenset[str]] = frozenset(
        {"annotations", "logprobs", "cache_control", "prompt_cache_breakpoint"}
    )

    type: Literal["input_text", "output_text", "text"]
    text: str


class RefusalPart(Fields):
    """A part of a message in which an answer was withheld."""

    type: Literal["refusal"]
    refusal: str

    @property
    def text(self) -> str:
        """The refusal."""
        return self.refusal


Part: TypeAlias = Annotated[
    Annotated[TextPart, Tag(tag_of("text"))]
    | Annotated[TextPart, Tag(tag_of("input_text"))]
    | Annotated[TextPart, Tag(tag_of("output_text"))]
    | Annotated[RefusalPart, Tag(tag_of("refusal"))],
    BY_TYPE,
]

Content: TypeAlias = str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)]


def joined(content: str | Sequence[HasText]) -> str:
    """The text of a content, which keeps the parts."""
    return content if isinstance(content, str) else PartsText(part.text for part in content)
