"""What a chat template lacks, written as text: roles for the system and for tools, calls, several users in a row."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from bough.policy.calls import CallFormat
from bough.policy.tool_text import result_as_text
from bough.tree import Action, read_call


class Entry(NamedTuple):
    """A message for the template, hashable.

    Attributes:
        role: Its role.
        content: Its text.
        calls: The calls of an assistant's message, as JSON; "" without any.
        call_id: The call that a tool's message answers.
        sampled: Whether its tokens were sampled.
    """

    role: str
    content: str
    calls: str = ""
    call_id: str = ""
    sampled: bool = False


def without_tool_role(
    entries: Sequence[Entry], call_format: CallFormat, *, calls: bool = True, results: bool = True
) -> list[Entry]:
    """Calls as text where `calls`; results as the user's messages where `results`, those in a row as one message."""
    shown: list[Entry] = []
    for entry in entries:
        if entry.calls and calls:
            found = tuple(map(read_call, json.loads(entry.calls)))
            shown.append(entry._replace(content=call_format.write(Action(text=entry.content, calls=found)), calls=""))
        elif entry.role == "tool" and results:
            shown.append(Entry("result", result_as_text(entry.content)))
        else:
            shown.append(entry)
    shown = joined_role(shown, "result", "\n")
    return [Entry("user", entry.content) if entry.role == "result" else entry for entry in shown]


def without_system_role(entries: Sequence[Entry]) -> list[Entry]:
    """System messages as the beginning of the user's message after them."""
    shown: list[Entry] = []
    for entry in entries:
        if entry.role == "user" and shown and shown[-1].role == "system":
            shown[-1] = Entry("user", f"{shown[-1].content}\n\n{entry.content}")
        else:
            shown.append(entry)
    return [Entry("user", entry.content) if entry.role == "system" else entry for entry in shown]


def joined_role(entries: Sequence[Entry], role: str, between: str) -> list[Entry]:
    """Messages of a role in a row as one."""
    shown: list[Entry] = []
    for entry in entries:
        if shown and entry.role == role == shown[-1].role:
            shown[-1] = Entry(role, f"{shown[-1].content}{between}{entry.content}")
        else:
            shown.append(entry)
    return shown
