"""Conversations with calls and results as turns and as text."""

from dataclasses import replace

import pytest

from bough.tree import (
    Action,
    BadCall,
    Credited,
    Kind,
    Message,
    Outcome,
    Tool,
    ToolCall,
    action_info,
    action_text,
    observation_info,
    plain_text,
)
from bough.view import show_tree
from bough.view.branch import branches
from bough.view.calls import tool_line

TOOL = Tool(name="get", description="Balance of <one>.\nMore.", schema={"properties": {"name": {}}})
GOOD = ToolCall(name="get", arguments={"name": "<ann>"})
BAD = BadCall(text="<tool_call>{</tool_call>", problem="got no JSON; need <b>")
ASKED = Action(text="I look.", calls=(GOOD, BAD))
RESULTS = (Message(role="tool", content="5 & 6", call_id="c1"), Message(role="tool", content="error: got no JSON"))


@pytest.fixture
def called(grown) -> Credited:
    credited = grown(
        [
            (-1, Kind.PROMPT, "Who pays?"),
            (0, Kind.ACTION, action_text(ASKED)),
            (1, Kind.OBSERVATION, plain_text(RESULTS)),
            (2, Kind.ACTION, "done", Outcome.OPEN, False, 1.0),
            (3, Kind.OBSERVATION, "", Outcome.TERMINATED, True),
        ]
    )
    tree = credited.tree
    more = (
        {"instructions": "Keep accounts.", **observation_info("", (TOOL,))},
        {**action_info(ASKED), "raw": "I look.<raw>"},
        observation_info(RESULTS, None),
        {},
        {},
    )
    info = tuple({**old, **new} for old, new in zip(tree.info, more, strict=True))
    rewarded = replace(credited.rewarded, tree=replace(tree, info=info))
    return replace(credited, rewarded=rewarded)


def test_a_turn_has_its_calls_and_the_messages_of_the_response(called: Credited) -> None:
    (branch,) = branches(called)
    first, last = branch.turns
    assert (first.said, first.calls, first.messages) == ("I look.", (GOOD, BAD), RESULTS)
    assert first.label == 'I look. get(name="<ann>") <tool_call>{</tool_call>'
    assert (last.said, last.calls, last.label) == ("done", (), "done")


def test_a_tool_is_shown_with_the_types_of_its_arguments() -> None:
    properties = {
        "n": {"type": "integer"},
        "to": {"enum": ["a", 1]},
        "at": {"anyOf": [{"type": "string"}, {"type": "null"}, {"$ref": "#/$defs/P"}]},
        "of": {"type": ["number", "null"]},
        "any": True,
    }
    tool = Tool(name="go", description="Goes.", schema={"properties": properties, "required": ["n"]})
    types = 'n: integer, to?: "a" or 1, at?: string or null or ..., of?: number or null, any?'
    assert tool_line(tool) == f"go({types})  Goes."


def test_a_group_as_text_has_calls_on_one_line(called: Credited) -> None:
    lines = show_tree([called]).splitlines()
    assert lines[2].startswith('└─ I look. get(name="<ann>")')
