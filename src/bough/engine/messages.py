"""Tokens of a conversation for a chat server: UTF-8 bytes, and marks around messages, tools and calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from bough.tree import (
    Action,
    AgentAction,
    BadCall,
    Message,
    Role,
    Tool,
    ToolCall,
    assistant_message,
    openai_conversation,
    tool_record,
)

SYSTEM, USER, ASSISTANT, END, TOOL, TOOLS, CALL = range(256, 263)
"""The marks. A message begins with its role's and ends with END; so do the tools. CALL precedes a call, and in a result
the text after the id of its call."""

ROLES: Mapping[int, Role] = {SYSTEM: "system", USER: "user", ASSISTANT: "assistant", TOOL: "tool"}

MARKS = {role: mark for mark, role in ROLES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Renders a conversation as bytes and marks; `conversation` decodes them to the messages of a request.

    Any text is representable, for any server model. Contexts append, truncate and rebuild these tokens as usual.

    Examples:
        >>> messages = Message(role="system", content="Go."), Message(role="user", content="up?")
        >>> Messages().render(messages)
        (256, 71, 111, 46, 259, 257, 117, 112, 63, 259, 258)
        >>> conversation(Messages().render(messages))
        [{'role': 'system', 'content': 'Go.'}, {'role': 'user', 'content': 'up?'}]

    Attributes:
        stop_tokens: The end of a message.
    """

    stop_tokens: tuple[int, ...] = (END,)

    @property
    def prompt_thinking(self) -> None:
        """A server keeps the thinking of its model apart."""
        return None

    @property
    def part_separator(self) -> str:
        """Parts are lines."""
        return "\n"

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        """Render a whole context, up to the generation prompt."""
        rows = [tool_record(tool) for tool in tools]
        offered = (TOOLS, *_bytes(json.dumps(rows, ensure_ascii=False)), END) if rows else ()
        return (*offered, *_following(messages))

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        """The tokens from the last assistant's message to the generation prompt, with the messages in between."""
        del tools  # They are at the start of the context.
        last = max(place for place, message in enumerate(messages) if message.role == "assistant")
        written = messages[last].tokens
        return (*_closed(written)[len(written) :], *_following(messages[last + 1 :]))

    def write(self, action: AgentAction) -> tuple[int, ...]:
        """The tokens of an action that the policy did not sample, with a stop token."""
        message = assistant_message(action)
        return (*_written(message.content, [*map(_call_row, message.tool_calls)]), END)

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        """The text and the calls in the tokens of an action; a call without a JSON object as arguments is bad."""
        del tools  # Arguments are JSON.
        text, *calls = _split(tokens)
        return Action(text=text, calls=tuple(map(_read_call, calls)))

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, each call on a line. A character cut in the middle becomes a replacement character."""
        return "\n".join(filter(None, _split(tokens)))

    def call_grammar(
        self,
        tools: Sequence[Tool],
        *,
        required: bool = False,
        most_calls: int | None = None,
        answer: Mapping[str, object] | None = None,
    ) -> NoReturn:
        """Raises `ValueError`: a server writes calls in a form of its own."""
        del tools, required, most_calls, answer
        raise ValueError(
            "got a chat server, whose calls no grammar enforces; need an engine with weights, such as Local()"
        )


def answered(text: str, calls: Sequence[Mapping[str, str]], most: int, *, ended: bool) -> tuple[tuple[int, ...], bool]:
    """The tokens of a server's message, and whether they are all.

    Args:
        text: Its text.
        calls: "id", "name" and "arguments" of each call, as the server wrote them.
        most: Most tokens; more are cut off after a whole character.
        ended: Whether the message has an end.
    """
    tokens = (*_written(text, calls), *([END] if ended else []))
    if len(tokens) <= most:
        return tokens, ended
    kept = tokens[:most]
    begin = max((place + 1 for place, token in enumerate(kept) if token == CALL), default=0)
    return (*kept[:begin], *bytes(kept[begin:]).decode("utf-8", "ignore").encode()), False


def conversation(tokens: Sequence[int]) -> list[dict[str, Any]]:
    """The messages of tokens in OpenAI's form, without the assistant message to generate.

    See `openai_conversation` for malformed calls, and for results whose calls the context has dropped.

    Raises:
        ValueError: when the tokens are not a conversation that ends with the start of an assistant message.
    """
    found: list[Message | Action] = []
    for mark, (text, *parts) in _entries(tokens):
        if mark == ASSISTANT:
            found.append(Action(text=text, calls=tuple(map(_read_call, parts))))
        elif mark == TOOL:
            found.append(Message(role="tool", content="".join(parts), call_id=text))
        elif mark in ROLES:
            found.append(Message(role=ROLES[mark], content=text))
    return openai_conversation(found)


def offered(tokens: Sequence[int]) -> list[dict[str, Any]]:
    """The tools of a conversation in OpenAI's form; [] without any."""
    return json.loads(_split(tokens[1 : tokens.index(END)])[0]) if tokens[0] == TOOLS else []


def _entries(tokens: Sequence[int]) -> list[tuple[int, list[str]]]:
    """The mark and the texts of the tools and of each message.

    Raises:
        ValueError: see `conversation`.
    """
    entries: list[tuple[int, list[str]]] = []
    begin = 0
    while begin < len(tokens) - 1:
        try:
            end = tokens.index(END, begin)
        except ValueError:
            break
        inside = tokens[begin + 1 : end]
        if tokens[begin] not in (*ROLES, TOOLS) or any(not 0 <= each < SYSTEM and each != CALL for each in inside):
            break
        entries.append((tokens[begin], _split(inside)))
        begin = end + 1
    if not any(mark in ROLES for mark, _ in entries) or tuple(tokens[begin:]) != (ASSISTANT,):
        raise ValueError(
            f"generate: got tokens that are no conversation from position {begin} on; need messages that end with "
            "the start of an assistant message: take the engine's own renderer, Agent(renderer=engine.renderer, ...), "
            "and an explorer that writes whole actions"
        )
    return entries


def _following(messages: Sequence[Message]) -> tuple[int, ...]:
    """The tokens of messages, and the generation prompt."""
    return (*(token for message in messages for token in _message(message)), ASSISTANT)


def _message(message: Message) -> tuple[int, ...]:
    mark = MARKS[message.role]
    if message.tokens:
        return (mark, *_closed(message.tokens))
    if message.role == "tool":
        return (mark, *_bytes(message.call_id), CALL, *_bytes(message.content), END)
    return (mark, *_written(message.content, [*map(_call_row, message.tool_calls)]), END)


def _written(text: str, calls: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
    """The tokens of a text and calls."""
    rows = [json.dumps(call, ensure_ascii=False) for call in calls]
    return (*_bytes(text), *(token for row in rows for token in (CALL, *_bytes(row))))


def _split(tokens: Sequence[int]) -> list[str]:
    """The text before, between and after the marks of calls; other marks are left out."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token == CALL:
            parts.append([])
        elif token < SYSTEM:
            parts[-1].append(token)
    return [bytes(part).decode("utf-8", "replace") for part in parts]


def _call_row(call: ToolCall) -> dict[str, str]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.call_id, "name": call.name, "arguments": arguments}


def _read_call(text: str) -> ToolCall | BadCall:
    """The call of a row."""
    try:
        row: dict[str, str] = json.loads(text)
    except ValueError:
        return BadCall(text=text, problem="got a call that is cut off; write less, or raise sampling.max_tokens")
    written = f"{row['name']}({row['arguments']})"
    try:
        # An empty text is what some servers write for a call without arguments.
        arguments: object = json.loads(row["arguments"] or "{}")
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError) as error:
        return BadCall(text=written, problem=f"got arguments that are no JSON ({error}); need a JSON object")
    if not isinstance(arguments, dict) or not row["name"]:
        return BadCall(text=written, problem="got no name, or arguments that are no JSON object; need both")
    return ToolCall(name=row["name"], arguments=cast("Mapping[str, object]", arguments), call_id=row["id"])


def _bytes(text: str) -> bytes:
    # A lone surrogate has no UTF-8 encoding.
    return text.encode("utf-8", "replace")


def _closed(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tokens if tokens[-1:] == (END,) else (*tokens, END)
