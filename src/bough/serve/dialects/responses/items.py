"""The items of a request as messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bough.serve.dialects.responses.request import (
    CallItem,
    Item,
    MessageItem,
    OutputItem,
    Parts,
    ReasoningItem,
    TextPart,
)
from bough.serve.errors import ApiError
from bough.serve.parts import PartsText
from bough.serve.request import MOST_CALLS, read_arguments
from bough.serve.thinking import ThinkingMessage
from bough.tree import Message, ToolCall


@dataclass(slots=True)
class _Answer:
    """The items of one earlier response, which are one message of the assistant.

    Attributes:
        place: The index of the first item; -1 before it.
        thinking: The texts of its reasoning.
        content: Its text; None without a message.
        calls: Its calls.
    """

    place: int = -1
    thinking: list[str] = field(default_factory=list[str])
    content: str | None = None
    calls: list[ToolCall] = field(default_factory=list[ToolCall])

    @property
    def message(self) -> Message:
        """The message."""
        thinking = "\n".join(self.thinking).strip()
        return ThinkingMessage(
            role="assistant", content=self.content or "", tool_calls=tuple(self.calls), thinking=thinking
        )


def read_items(items: str | Sequence[Item]) -> tuple[list[Message], list[int]]:
    """The messages of the items of a request, and the index of the first item of each.

    Reasoning, a message of the assistant and calls in a row are one message: those of one response.

    Raises:
        ApiError: 400 for arguments of a call that are no JSON object, and for too many calls in a row.
    """
    if isinstance(items, str):
        return [Message(role="user", content=items)], [0]
    messages, places, answer = list[Message](), list[int](), _Answer()

    def add(message: Message, place: int) -> None:
        messages.append(message)
        places.append(place)

    for place, item in enumerate(items):
        if _ends(answer, item):
            add(answer.message, answer.place)
            answer = _Answer()
        match item:
            case OutputItem():
                add(Message(role="tool", content=_text(item.output), call_id=item.call_id), place)
                continue
            case MessageItem(role="assistant"):
                answer.content = _text(item.content)
            case MessageItem():
                add(Message(role="user" if item.role == "user" else "system", content=_text(item.content)), place)
                continue
            case ReasoningItem():
                answer.thinking += [part.text for part in item.content or ()]
            case CallItem():
                name, arguments = item.name, read_arguments(item.arguments, f"input[{place}].arguments")
                answer.calls.append(ToolCall(name=name, arguments=arguments, call_id=item.call_id))
                if len(answer.calls) > MOST_CALLS:
                    raise ApiError(400, f"input[{place}]: got more than {MOST_CALLS} calls in a row", param="input")
        answer.place = place if answer.place < 0 else answer.place
    if answer.place >= 0:
        add(answer.message, answer.place)
    return messages, places


def _ends(answer: _Answer, item: Item) -> bool:
    """Whether an item is not one of the response before it."""
    if answer.place < 0:
        return False
    match item:
        case CallItem():
            return False
        case ReasoningItem():
            return answer.content is not None or bool(answer.calls)
        case MessageItem(role="assistant"):
            return answer.content is not None or bool(answer.calls)
        case _:
            return True


def _text(content: str | Parts) -> str:
    """The text of a content."""
    if isinstance(content, str):
        return content
    return PartsText(part.text if isinstance(part, TextPart) else part.refusal for part in content)
