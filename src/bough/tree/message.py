"""Conversations: messages, tools and calls of tools, as values."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from bough.tree.copied import copied_fields

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

NAME = re.compile(r"[\w.:/$ -]{1,128}")


def check_tool_name(name: object) -> str:
    """Return the name of a tool if it is valid; special tokens and delimiters of calls are not.

    They have brackets, bars or line feeds.

    Raises:
        ValueError: for a name with other characters, or of more than 128.
    """
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise ValueError(
        f"got the tool name {name!r:.100}; need 1 to 128 letters, digits, blanks and characters of _.:/$-: rename the "
        "tool"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that an agent may call.

    Attributes:
        name: Its name in calls.
        description: What it does, for the model.
        schema: JSON schema of the arguments, an object.

    Raises:
        ValueError: see `check_tool_name`.
    """

    name: str
    description: str
    schema: Mapping[str, object]

    def __post_init__(self) -> None:
        check_tool_name(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, as the model's text has it; the arguments may not fit the tool's schema.

    Attributes:
        name: Name of the tool.
        arguments: By name; values that JSON can write.
        call_id: Identifies the call in the message with its result; "" where the model's format has no ids.
    """

    name: str
    arguments: Mapping[str, object]
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadCall:
    """A part of an action that begins like a call and is none.

    Attributes:
        text: The part.
        problem: What is wrong with it, for the model.
        family: The model family whose format the part has, where it is another one than the model's; "" elsewhere.
    """

    text: str
    problem: str
    family: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action of a conversation: text and calls of tools.

    Attributes:
        text: The text besides the calls.
        calls: In the order of the text.
    """

    text: str = ""
    calls: tuple[ToolCall | BadCall, ...] = ()

    def copy(self) -> "Action":
        """Returns the action with arguments of its own, so that a change of an object in them does not reach it."""
        own = (
            each if isinstance(each, BadCall) else replace(each, arguments=copied_fields(each.arguments))
            for each in self.calls
        )
        return replace(self, calls=tuple(own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a conversation.

    Attributes:
        role: Its author. "tool" is the result of a call.
        content: The text.
        tool_calls: The calls of an assistant's message.
        call_id: The call that a tool's message answers; "" where the model's format has no ids.
        tokens: The tokens of an assistant's message as sampled; () for a message that was not sampled. A renderer
            uses them in place of the text.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tokens: tuple[int, ...] = field(default=(), compare=False)


Observation: TypeAlias = str | tuple[Message, ...]
"""What an agent reads before an action: messages, or the text of one user's message."""


def messages(observation: str | Sequence[Message]) -> tuple[Message, ...]:
    """The messages of an observation: a text is one message of the user."""
    return (Message(role="user", content=observation),) if isinstance(observation, str) else tuple(observation)


def plain_text(observation: str | Sequence[Message]) -> str:
    """The text of an observation: the contents of its messages, one below the other."""
    return observation if isinstance(observation, str) else "\n".join(each.content for each in observation)


def add_line(observation: Observation, line: str) -> Observation:
    """The observation with a line below the user's last message; with a user's message more after any other role."""
    if isinstance(observation, str):
        return f"{observation}\n{line}"
    *before, last = (*observation,) or (Message(role="user", content=""),)
    if last.role != "user":
        return (*before, last, Message(role="user", content=line))
    return (*before, replace(last, content=f"{last.content}\n{line}"))


AgentAction: TypeAlias = str | Action
"""What an agent does in a turn: a text, or text and calls where the environment takes calls."""


def action_text(action: AgentAction) -> str:
    """The text of an action; a call is written as `name({"argument": 1})`, on a line of its own."""
    if isinstance(action, str):
        return action
    return "\n".join([*([action.text] if action.text else []), *map(_call_text, action.calls)])


def _call_text(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        return call.text
    return f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)})"


def assistant_message(action: AgentAction) -> Message:
    """An action as an assistant's message; bad calls are part of its text."""
    if isinstance(action, str):
        return Message(role="assistant", content=action)
    good = tuple(call for call in action.calls if isinstance(call, ToolCall))
    bad = tuple(call for call in action.calls if isinstance(call, BadCall))
    content = action_text(Action(text=action.text, calls=bad))
    return Message(role="assistant", content=content, tool_calls=good)
