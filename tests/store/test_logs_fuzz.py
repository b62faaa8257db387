"""Generated message logs: each is read as conversations that can be written, or refused by file and line."""

import json
from pathlib import Path

from tests.damage import lines, refusal
from tests.fuzz import inputs

from bough.store import Conversation, read_conversations
from bough.tree import openai_messages, tool_record

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": [1.5]}'}}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}
LOG: list[object] = [
    {"messages": [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}], "reward": 1.0},
    {
        "task": "t",
        "success": True,
        "tools": [TOOL],
        "messages": [
            {"role": "system", "content": "Add."},
            {"role": "user", "content": [{"type": "text", "text": "2 + 3?"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "5", "tool_call_id": "c1", "name": "add"},
            {"role": "assistant", "content": "5", "weight": 1},
        ],
    },
    {"prompt": [{"role": "user", "content": "go"}], "completion": [{"role": "assistant", "content": "left"}]},
]


def test_logs_are_read_or_refused(tmp_path: Path) -> None:
    file, read_whole = tmp_path / "log.jsonl", 0
    for number, rng in inputs("logs"):
        file.write_bytes(lines(rng, LOG))
        message = refusal(lambda: check(read_conversations(file)), ValueError, number)
        assert not message or "log.jsonl" in message, number
        assert len(message) < 2000, number
        read_whole += not message
    assert read_whole


def check(found: list[Conversation]) -> None:
    """Write the conversations, as exports do."""
    for each in found:
        rows = [openai_messages(each.messages), [*map(tool_record, each.tools)], each.task, each.reward]
        json.dumps(rows, ensure_ascii=False, allow_nan=False).encode()
