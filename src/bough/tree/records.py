"""Messages, actions and tools as JSON data, and back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bough.tree.message import Action, AgentAction, BadCall, Message, Tool, ToolCall


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
        return {"text": call.text, "problem": call.problem}
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
