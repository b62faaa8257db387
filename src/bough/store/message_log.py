"""Conversations in OpenAI's form, from JSON lines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bough.tree import Message, Tool, call_record, in_call_order, read_openai_message, read_tool
from bough.tree.reward_range import MOST_REWARD
from bough.usercode.json_file import parse_json, read_objects, shown
from bough.usercode.origin import shorten

EXAMPLE = '{"messages": [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}]}'


MOST_SHOWN = 400
"""Characters of a row's problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A row of a log.

    Attributes:
        messages: The messages, with at least one of the assistant.
        learned: For each message whether it is an example: assistants' messages, without those of "weight" 0.
        tools: The tools.
        task: The name of the task; "" where the row has none.
        reward: The reward of the whole; None where the row has none.
        success: Whether the task is solved; None where it is unknown.
    """

    messages: tuple[Message, ...]
    learned: tuple[bool, ...]
    tools: tuple[Tool, ...] = ()
    task: str = ""
    reward: float | None = None
    success: bool | None = None


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file, in order; empty lines are skipped.

    A row is `{"messages": [...], "tools": [...], "task": ..., "reward": ..., "success": ...}`, as for fine-tuning at
    OpenAI, or TRL's `{"prompt": [...], "completion": [...]}`, whose prompt is no example. All but the messages are
    optional. TRL's `{"prompt": [...], "chosen": [...], "rejected": [...]}` is two conversations, with success and
    without. Results of tools are read in the order of their calls, matched by their ids; see `in_call_order`.

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: when a line is no conversation, or there is none at all; names the line.
    """
    found: list[Conversation] = []
    for where, row in read_objects(path, f"a row such as {EXAMPLE}"):
        try:
            found += map(_conversation, _sides(row))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = shorten(str(error), MOST_SHOWN) if isinstance(error, ValueError) else "got no conversation"
            raise ValueError(f"{where}: {why}; need a row such as {EXAMPLE}") from error
    if not found:
        raise ValueError(f"{path}: got no conversation; need one a line, such as {EXAMPLE}")
    return found


def _sides(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conversations of a row: two for a preference, of which the chosen one is a success."""
    if "chosen" not in row or "rejected" not in row:
        return [row]
    shared = {name: value for name, value in row.items() if name not in ("chosen", "rejected", "reward", "success")}
    return [{**shared, "completion": row[side], "success": side == "chosen"} for side in ("chosen", "rejected")]


def _conversation(row: Mapping[str, Any]) -> Conversation:
    given = cast("list[Mapping[str, Any]]", [*row.get("prompt", ()), *row.get("completion", ())])
    rows = cast("list[Mapping[str, Any]]", row["messages"]) if "messages" in row else given
    messages = in_call_order([_message(place, each) for place, each in enumerate(rows)])
    context = 0 if "messages" in row else len(row.get("prompt", ()))
    learned = tuple(
        each.role == "assistant" and place >= context and _is_example(place, rows[place])
        for place, each in enumerate(messages)
    )
    if not any(each.role == "assistant" for each in messages):
        raise ValueError("got no message of the assistant; need one at least")
    if messages[0].role == "assistant":
        raise ValueError("got a message of the assistant first; need one to which it answers")
    reward, success = row.get("reward"), row.get("success")
    if not isinstance(success, bool | None) or not isinstance(reward, int | float | None):
        raise ValueError(f"got reward={reward!r}, success={success!r}; need a number, and true or false")
    if reward is not None and abs(reward) > MOST_REWARD:
        raise ValueError(f"got a reward of {shown(str(reward))}; need at most {MOST_REWARD:g}")
    if row.get("functions"):
        raise ValueError("got 'functions', OpenAI's older form, which would be dropped; need 'tools'")
    return Conversation(
        messages=messages,
        learned=learned,
        tools=tuple(map(_tool, row.get("tools") or ())),
        task="" if row.get("task") is None else str(row["task"]),
        reward=None if reward is None else float(reward),
        success=success,
    )


def _tool(row: Mapping[str, Any]) -> Tool:
    tool = read_tool(row)
    name, description, schema = cast("tuple[object, object, object]", (tool.name, tool.description, tool.schema))
    if not (name and isinstance(name, str) and isinstance(description, str) and isinstance(schema, Mapping)):
        raise ValueError(f"got the tool {row!s:.200}; need texts as name and description, and an object as parameters")
    return tool


def _message(place: int, row: object) -> Message:
    if not isinstance(row, Mapping):
        raise ValueError(f"messages[{place}]: got {str(row)[:80]!r}; need an object with role and content")
    try:
        message = read_openai_message(cast("Mapping[str, Any]", row))
        # Arguments are JSON within JSON.
        parse_json(json.dumps([call_record(call) for call in message.tool_calls]))
    except RecursionError as error:
        raise ValueError(f"messages[{place}]: got arguments that are nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"messages[{place}]: {error}") from error
    return message


def _is_example(place: int, row: Mapping[str, Any]) -> bool:
    """Whether the weight of an assistant's message makes it an example: 1, or none."""
    weight = row.get("weight", 1)
    if isinstance(weight, bool) or weight not in (0, 1, None):
        raise ValueError(f"messages[{place}]: got weight={weight!r}; need 0 or 1")
    return weight != 0
