"""Rows of preferences are two conversations, of which one is a success."""

import json
from pathlib import Path
from typing import Any

import pytest

from bough.store import Conversation, read_conversations

ASK = {"role": "user", "content": "2 + 3?"}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def read(folder: Path, *rows: object) -> list[Conversation]:
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_conversations(file)


def test_a_preference_is_a_success_and_a_failure(tmp_path: Path) -> None:
    row = {"prompt": [ASK, says("7"), ASK], "chosen": [says("5")], "rejected": [says("6")], "task": "t"}
    # What a row says of the whole holds for neither side.
    won, lost = read(tmp_path, {**row, "tools": [TOOL], "reward": 1.0, "success": False})
    assert [each.messages[-1].content for each in (won, lost)] == ["5", "6"]
    assert (won.success, lost.success) == (True, False)
    assert won.reward is lost.reward is None
    for each in (won, lost):
        assert each.task == "t"
        assert each.tools[0].name == "add"
        assert each.learned == (False, False, False, True), "the prompt is no example"


def test_they_stand_in_order_among_other_rows(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"messages": [ASK, says("a")]},
        {"prompt": [ASK], "chosen": [says("b")], "rejected": [says("c")]},
        {"prompt": [ASK], "completion": [says("d")]},
    )
    assert [each.messages[-1].content for each in found] == [*"abcd"]
    assert [each.success for each in found] == [None, True, False, None]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"prompt": [ASK], "chosen": [says("b")]}, "no message of the assistant"),
        ({"prompt": [ASK], "chosen": [says("b")], "rejected": []}, "no message of the assistant"),
        ({"prompt": [ASK], "chosen": [says("b")], "rejected": None}, "no conversation"),
        ({"prompt": [ASK], "chosen": 5, "rejected": [says("b")]}, "no conversation"),
        ({"prompt": [ASK], "chosen": [says("b")], "rejected": ["c"]}, "need an object with role and content"),
    ],
)
def test_a_side_that_is_none_is_named_by_its_line(row: object, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"log\.jsonl, line 2: .*need a row such as") as caught:
        read(tmp_path, {"messages": [ASK, says("a")]}, row)
    assert problem in str(caught.value)
