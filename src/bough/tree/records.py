"""Messages, actions and tools as JSON data, and back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bough.tree.message import Action, AgentAction, BadCall, Message, Tool, ToolCall, assistant_message


def action_record(action: AgentAction) -> object:
    """Returns an action as JSON data: a text stays a text."""
    if isinstance(action, str):
        return action
    return {"text": action.text, "calls": [call_record(call) for call in action.calls]}


def read_action(record: object) -> AgentAction:
    """Returns the action of `action_record`."""
    if isinstance(record, str):
        return record
    row = cast("Mapping[str, Any]", record)
    return Action(text=row["text"], calls=tuple(map(read_call, row["calls"])))


def call_record(call: ToolCall | BadCall) -> dict[str, object]:
    """Returns a call as JSON data."""
    if isinstance(call, BadCall):
        return {"text": call.text, "problem": call.problem, **({"family": call.family} if call.family else {})}
    return {"name": call.name, "arguments": dict(call.arguments), "call_id": call.call_id}


def read_call(record: Mapping[str, Any]) -> ToolCall | BadCall:
    """Returns the call of `call_record`."""
    return BadCall(**record) if "problem" in record else ToolCall(**record)


def message_record(message: Message) -> dict[str, object]:
    """Returns a message as JSON data, without its tokens; calls and the id of a call only where there are any."""
    row: dict[str, object] = {"role": message.role, "content": message.content}
    row |= {"tool_calls": [call_record(call) for call in message.tool_calls]} if message.tool_calls else {}
    return row | ({"call_id": message.call_id} if message.call_id else {})


def read_message(record: Mapping[str, Any]) -> Message:
    """Returns the message of `message_record`."""
    calls = tuple(ToolCall(**call) for call in record.get("tool_calls", ()))
    text, call_id = record["content"], record.get("call_id", "")
    return Message(role=record["role"], content=text, tool_calls=calls, call_id=call_id)


def tool_record(tool: Tool) -> dict[str, object]:
    """Returns a tool as JSON data, in OpenAI's form."""
    described = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": described}


def read_tool(record: Mapping[str, Any]) -> Tool:
    """Returns the tool of `tool_record`."""
    row = record["function"]
    return Tool(name=row["name"], description=row.get("description", ""), schema=row.get("parameters", {}))


def openai_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Returns a conversation in OpenAI's form, with the arguments of calls as JSON text.

    A call without an id gets its number in the conversation, `call_1`; results without one are those of the calls
    before them, in order.
    """
    rows: list[dict[str, Any]] = []
    waiting: list[str] = []
    number = 0
    for message in messages:
        row: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            waiting = []
        calls: list[dict[str, object]] = []
        for call in message.tool_calls:
            number += 1
            waiting.append(call.call_id or f"call_{number}")
            function = {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
            calls.append({"id": waiting[-1], "type": "function", "function": function})
        if calls:
            row["tool_calls"] = calls
        if message.role == "tool":
            next_id = waiting.pop(0) if waiting else ""
            row["tool_call_id"] = message.call_id or next_id
        rows.append(row)
    return rows


def openai_conversation(entries: Sequence[Message | AgentAction]) -> list[dict[str, Any]]:
    """Returns messages and an agent's actions in OpenAI's form, as servers accept them.

    Servers refuse calls without a JSON object as arguments, and results of no call. So a malformed call is part of the
    text, and its result a user's message after the other results; so is a result whose call is not in the conversation.

    Args:
        entries: In order. The results of an action's calls follow it, one for each call, in their order.
    """
    shown: list[Message] = []
    refused: list[Message] = []
    waiting: list[ToolCall | BadCall] = []
    for entry in entries:
        if isinstance(entry, Message) and entry.role == "tool":
            call = waiting.pop(0) if waiting else None
            good = isinstance(call, ToolCall)
            (shown if good else refused).append(entry if good else Message(role="user", content=entry.content))
            continue
        shown += refused
        refused = []
        calls = entry.tool_calls if isinstance(entry, Message) else () if isinstance(entry, str) else entry.calls
        waiting = [*calls]
        shown.append(entry if isinstance(entry, Message) else assistant_message(entry))
    return openai_messages([*shown, *refused])


READ = {"role", "content", "tool_calls", "tool_call_id", "weight"}
"""Fields of a message in OpenAI's form that are read."""


def read_openai_message(row: Mapping[str, Any]) -> Message:
    """Returns a message in OpenAI's form as a value; a developer's message is the system's.

    Parts of text are joined by line breaks, as vLLM joins them. A tool's message may have the tool's `name`.

    Raises:
        ValueError: when it is no such message, or has other fields than `READ` that are not empty; has the reason.
    """
    role = "system" if row.get("role") == "developer" else row.get("role")
    if role not in ("system", "user", "assistant", "tool"):
        raise ValueError(f"got the role {row.get('role')!r}; need system, developer, user, assistant or tool")
    for name, value in row.items():
        if name not in READ and value not in (None, "", [], {}) and (role, name) != ("tool", "name"):
            raise ValueError(
                f"got the field {name!r} in a message of the {role}, which would be dropped; need it in the content as "
                "text or calls, or leave it out"
            )
    calls = row.get("tool_calls")
    if not isinstance(calls, list | None):
        raise ValueError(f"got tool_calls={calls!r}; need a list")
    if calls and role != "assistant":
        raise ValueError(f"got calls in a message of the {role}; need them in one of the assistant")
    content = row.get("content")
    if content is None and not calls:
        raise ValueError(f"got a message of the {role} without content; need text, or calls of the assistant")
    call_id = row.get("tool_call_id")
    return Message(
        role=role,
        content=_read_content(content),
        tool_calls=tuple(map(_read_openai_call, cast("list[Mapping[str, Any]]", calls or []))),
        call_id="" if call_id is None else str(call_id),
    )


def _read_content(content: object) -> str:
    """The text of a content: a text, parts of text, or nothing."""
    if isinstance(content, str | None):
        return content or ""
    parts = cast("list[object]", content if isinstance(content, list) else [content])
    texts: list[str] = []
    for part in parts:
        row = cast("Mapping[str, object]", part if isinstance(part, Mapping) else {})
        text = row.get("text")
        if row.get("type") != "text" or not isinstance(text, str):
            raise ValueError(f"got {str(cast('object', part))[:80]!r} as content; need text, or parts of type 'text'")
        texts.append(text)
    return "\n".join(texts)


def _read_openai_call(row: Mapping[str, Any]) -> ToolCall:
    function = cast("Mapping[str, Any]", row.get("function") or {})
    name, written = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not name:
        raise ValueError("got a call without the name of a function; need function.name")
    try:
        arguments: object = json.loads(written or "{}") if isinstance(written, str | None) else written
    except ValueError as error:
        raise ValueError(f"got arguments of {name} that are no JSON ({error}); need an object") from None
    if not isinstance(arguments, dict):
        raise ValueError(f"got arguments of {name} that are no JSON object; need one")
    call_id = row.get("id")
    return ToolCall(
        name=name,
        arguments=cast("Mapping[str, object]", arguments),
        call_id="" if call_id is None else str(call_id),
    )
