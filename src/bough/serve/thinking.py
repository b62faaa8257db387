"""The thinking of an answer, apart from its text."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from bough.context import Renderer
from bough.tree import Message
from bough.tree.thinking import THINK, THINK_END, ThinkingState, split_thinking


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


def answer_parts(renderer: Renderer, text: str, *, ended: bool = False) -> tuple[str, str]:
    """The thinking at the beginning of an answer, and its text; all is thinking where it does not end.

    Args:
        renderer: Without thinking in its format the whole answer is text.
        text: The text of an action, with the marks of thinking.
        ended: Whether thinking that the prompt opened has ended, because a call follows the text.
    """
    if renderer.prompt_thinking is None:
        return "", text
    opened = renderer.prompt_thinking is ThinkingState.OPEN and not (ended and THINK_END not in text)
    found = split_thinking(text, opened=opened)
    return ("", text) if found.state is ThinkingState.ABSENT else (found.content.strip(), found.rest.lstrip())


def with_thinking(message: Message) -> str:
    """The content of a message as a model writes it: with its thinking before it."""
    thinking = thinking_of(message)
    return f"{THINK}\n{thinking}\n{THINK_END}\n\n{message.content}" if thinking else message.content


def thinking_tokens(renderer: Renderer, tokens: Sequence[int]) -> int:
    """The number of sampled tokens of the thinking, with the mark at its end."""
    if not answer_parts(renderer, renderer.text(tokens))[0]:
        return 0
    counts = range(len(tokens))
    return bisect_left(counts, True, key=lambda count: THINK_END in renderer.text(tokens[:count]))
