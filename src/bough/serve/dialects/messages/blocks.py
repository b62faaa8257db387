"""The blocks of a request's messages as messages."""

from collections.abc import Iterator

from bough.serve.dialects.messages.request import (
    Block,
    CallBlock,
    CountRequest,
    InputMessage,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
)
from bough.serve.dialects.ordered import ordered
from bough.serve.dialects.parts import joined
from bough.serve.errors import ApiError
from bough.serve.parts_text import PartsText
from bough.serve.thinking import ThinkingMessage
from bough.tree import Message, Role, ToolCall


def read_conversation(body: CountRequest) -> tuple[Message, ...]:
    """The messages of a request: the system prompt, and its messages with the results of tools in order.

    Raises:
        ApiError: 400 for a block that the message's role can't have, a last message of the assistant, and calls and
            results that do not match.
    """
    if body.messages[-1].role == "assistant":
        raise ApiError(
            400,
            f"messages.{len(body.messages) - 1}: got a last message of the assistant to go on with (prefill), which "
            "this server does not support; end with a message of the user",
            param="messages",
        )
    system = body.system or ""
    found = [("system", Message(role="system", content=joined(system)))] if system else []
    for number, message in enumerate(body.messages):
        place = f"messages.{number}"
        found += [(place, each) for each in _read(place, message)]
    return ordered([each for _, each in found], lambda index: found[index][0])


def _read(place: str, message: InputMessage) -> Iterator[Message]:
    """The message as one of the assistant, or as results of tools and texts between them, in the order of blocks."""
    if isinstance(message.content, str):
        yield Message(role=message.role, content=message.content)
    elif message.role == "assistant":
        yield _answer(place, message.content)
    else:
        texts: list[str] = []
        for number, block in enumerate(message.content):
            if isinstance(block, TextBlock):
                texts.append(block.text)
            elif isinstance(block, ResultBlock) and message.role == "user":
                yield from _said(message.role, texts)
                texts = []
                yield Message(role="tool", content=joined(block.content or ""), call_id=block.tool_use_id)
            else:
                raise _misplaced(place, number, block, message.role)
        yield from _said(message.role, texts)


def _answer(place: str, blocks: list[Block]) -> Message:
    thinking, texts, calls = list[str](), list[str](), list[ToolCall]()
    for number, block in enumerate(blocks):
        match block:
            case ThinkingBlock():
                thinking.append(block.thinking)
            case TextBlock():
                texts.append(block.text)
            case CallBlock():
                calls.append(ToolCall(name=block.name, arguments=block.input, call_id=block.id))
            case _:
                raise _misplaced(place, number, block, "assistant")
    return ThinkingMessage(
        role="assistant", content=PartsText(texts), tool_calls=tuple(calls), thinking="\n".join(thinking).strip()
    )


def _said(role: Role, texts: list[str]) -> list[Message]:
    return [Message(role=role, content=PartsText(texts))] if texts else []


def _misplaced(place: str, number: int, block: Block, role: str) -> ApiError:
    field = f"{place}.content.{number}"
    return ApiError(400, f"{field}: got a block {block.type} in a message of the {role}; leave it out", param=field)
