"""The thinking of an answer, apart from its text."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.context import Renderer
from bough.policy.calls.thinking import CLOSE, OPEN
from bough.tree import Message


@runtime_checkable
class HasThinking(Protocol):
    """A renderer whose chat template may have thinking."""

    @property
    def thinks(self) -> bool:
        """Whether the template has thinking, between `<think>` and `</think>`."""
        ...

    @property
    def opens_thinking(self) -> bool:
        """Whether the generation prompt ends with `<think>`, so that an action begins within thinking."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingMessage(Message):
    """An assistant's message whose thinking is apart from its content.

    Attributes:
        thinking: The thinking, without its marks.
    """

    thinking: str = ""


def thinking_of(message: Message) -> str:
    """The thinking of a message; "" without any."""
    return message.thinking if isinstance(message, ThinkingMessage) else ""


def has_thinking(renderer: Renderer) -> bool:
    """Whether the chat template of a renderer has thinking."""
    return isinstance(renderer, HasThinking) and renderer.thinks


def split_thinking(renderer: Renderer, text: str, *, ended: bool = False) -> tuple[str, str]:
    """The thinking at the begin of a text, and the text after it; all is thinking where it does not end.

    Args:
        renderer: Without thinking in its template the whole text is text.
        text: The text of an action, with the marks of thinking.
        ended: Whether thinking that the prompt opened has ended, because a call follows the text.
    """
    begin = text.lstrip()
    if not has_thinking(renderer):
        return "", text
    assert isinstance(renderer, HasThinking)
    opened = renderer.opens_thinking and not (ended and CLOSE not in text)
    if not opened and not begin.startswith(OPEN):
        return "", text
    thinking, _, rest = begin.removeprefix(OPEN).partition(CLOSE)
    return thinking.strip(), rest.lstrip()


def with_thinking(message: Message) -> str:
    """The content of a message as a model writes it: with its thinking before it."""
    thinking = thinking_of(message)
    return f"{OPEN}\n{thinking}\n{CLOSE}\n\n{message.content}" if thinking else message.content


def thinking_tokens(renderer: Renderer, tokens: Sequence[int]) -> int:
    """The number of sampled tokens of the thinking, with the mark at its end."""
    if not split_thinking(renderer, renderer.text(tokens))[0]:
        return 0
    counts = range(len(tokens))
    return bisect_left(counts, True, key=lambda count: CLOSE in renderer.text(tokens[:count]))
