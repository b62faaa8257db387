"""The history of a call of an agent program, and how it differs from that of an earlier call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

from bough.serve.thinking import thinking_of
from bough.tree import Message, Tool
from bough.tree.thinking import answer_of
from bough.usercode.origin import shorten

SHOWN = 200
"""Characters of a message in the info of an edit."""

QUOTED = 8
"""Characters from which on a text in a prompt counts as quoted from an earlier answer."""

Key: TypeAlias = tuple[str, str, str]


class EditKind(StrEnum):
    """What differs between the history of a call and that of the earlier call on whose path it is."""

    TOOLS = "tools"
    """The tools."""
    SYSTEM = "system"
    """The system messages at the beginning."""
    THINKING = "thinking"
    """The thinking of an earlier answer."""
    ANSWERS = "answers"
    """The text or the calls of an earlier answer."""
    MESSAGES = "messages"
    """An earlier message of the program: of the user, or the result of a tool."""
    TURNS = "turns"
    """Earlier messages are missing, or others stand in their place: a window, a summary, a step back."""
    RENDERING = "rendering"
    """The tokens alone: the chat template shows earlier messages otherwise, an answer was cut, or it is no chat."""
    CONVERSATION = "conversation"
    """All, and the system messages or the tools: a conversation of its own, such as that of a sub-agent."""


@dataclass(frozen=True, slots=True)
class History:
    """The messages before a call; with an answer, after it.

    Attributes:
        system: The system messages at the beginning.
        turns: The other messages.
        tools: The tools.
        keys: The role, the text without its thinking and the calls of each turn.
    """

    system: tuple[Message, ...]
    turns: tuple[Message, ...]
    tools: tuple[Tool, ...]
    keys: tuple[Key, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(map(_key, self.turns)))

    @classmethod
    def of(cls, messages: Sequence[Message], tools: Sequence[Tool]) -> "History":
        """The history of messages."""
        system = tuple(takewhile(lambda message: message.role == "system", messages))
        return cls(system, tuple(messages[len(system) :]), tuple(tools))

    @property
    def answers(self) -> int:
        """The number of messages of the assistant."""
        return sum(each.role == "assistant" for each in self.turns)

    def shared(self, other: "History") -> tuple[int, int]:
        """The numbers of answers and of turns of this history that another one has too."""
        both = {*self.keys} & {*other.keys}
        return sum(role == "assistant" for role, _, _ in both), len(both)

    def has_roles_of(self, other: "History") -> bool:
        """Whether the turns have the roles of another history, one by one; there may be more turns."""
        pairs = list(zip(self.turns, other.turns, strict=False))
        return len(pairs) == len(other.turns) and all(one.role == two.role for one, two in pairs)

    def has_agent_of(self, other: "History") -> bool:
        """Whether system messages and tools are those of another history."""
        return self.tools == other.tools and _texts(self.system) == _texts(other.system)

    def quotes(self, answer: Message, *, shortest: int = QUOTED) -> bool:
        """Whether a message has the text of an answer, or a text that is an argument of one of its calls.

        Args:
            answer: The answer.
            shortest: Characters from which on a text counts.
        """
        parts = [part for part in _parts(answer) if len(part) >= shortest]
        return any(part in each.content for part in parts for each in (*self.system, *self.turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The difference between two histories.

    Attributes:
        kinds: What differs.
        at: The index of the first message that differs; -1 where only tools or tokens differ.
        before: Its text and calls in the earlier history; "" without one.
        after: Its text and calls in the later history; "" without one.
    """

    kinds: tuple[EditKind, ...]
    at: int = -1
    before: str = ""
    after: str = ""

    def record(self) -> dict[str, object]:
        """The edit as JSON data, for people."""
        row: dict[str, object] = {"kinds": [str(kind) for kind in self.kinds]}
        return row if self.at < 0 else row | {"message": self.at, "before": self.before, "after": self.after}


def difference(before: History, after: History, *, quoted: bool) -> Edit:
    """How a history differs from an earlier one with its answer.

    Args:
        before: The earlier one.
        after: The later one, whose tokens do not continue those of the earlier one.
        quoted: Whether the later one quotes the answer of the earlier one.
    """
    turns = _turn_kinds(before, after, quoted=quoted)
    if turns == [EditKind.CONVERSATION]:
        return Edit(kinds=(EditKind.CONVERSATION,))
    changed = [
        *([EditKind.TOOLS] if before.tools != after.tools else []),
        *([EditKind.SYSTEM] if _texts(before.system) != _texts(after.system) else []),
        *turns,
    ]
    kinds = tuple(changed or [EditKind.RENDERING])
    old, new = (*before.system, *before.turns), (*after.system, *after.turns)
    at = next((place for place, (was, now) in enumerate(zip(old, new, strict=False)) if not _same(was, now)), -1)
    if at < 0 and len(new) < len(old):
        at = len(new)
    shown = [
        shorten("\n".join(filter(None, _exact(each[at])[1:])), SHOWN) if 0 <= at < len(each) else ""
        for each in (old, new)
    ]
    return Edit(kinds=kinds, at=at, before=shown[0], after=shown[1])


def _turn_kinds(before: History, after: History, *, quoted: bool) -> list[EditKind]:
    if not after.turns:
        return []
    pairs = list(zip(before.turns, after.turns, strict=False))
    shares = bool(before.shared(after)[1])
    if after.has_roles_of(before) and (shares or not before.turns):
        return list(dict.fromkeys(_kind(was, now) for was, now in pairs if not _same(was, now)))
    goes_on = shares or before.has_agent_of(after) or (quoted and _texts(before.system) == _texts(after.system))
    return [EditKind.TURNS if goes_on else EditKind.CONVERSATION]


def _kind(was: Message, now: Message) -> EditKind:
    if _key(was) == _key(now):
        return EditKind.THINKING
    return EditKind.ANSWERS if now.role == "assistant" else EditKind.MESSAGES


def _same(was: Message, now: Message) -> bool:
    """Whether a message is an earlier one; a client may leave out the thinking that it got apart from the text."""
    thinking = thinking_of(now)
    return _exact(was) == _exact(now) and (not thinking or thinking == thinking_of(was))


def _key(message: Message) -> Key:
    role, content, calls = _exact(message)
    return role, answer_of(content).strip() if role == "assistant" else content, calls


def _exact(message: Message) -> Key:
    calls = [[each.name, each.arguments] for each in message.tool_calls]
    return message.role, message.content, json.dumps(calls, sort_keys=True, default=str) if calls else ""


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]


def _parts(answer: Message) -> list[str]:
    """The texts of an answer: its own without the thinking, and those in its calls."""
    arguments = [text for call in answer.tool_calls for text in call.arguments.values() if isinstance(text, str)]
    return [answer_of(answer.content).strip(), *arguments]
