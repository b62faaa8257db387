"""The texts, messages and calls in the `info` of a node that code reads."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

from bough.tree.message import Action, AgentAction, BadCall, Message, Observation, Tool, ToolCall
from bough.tree.records import call_record, message_record, read_call, read_message, read_tool, tool_record
from bough.tree.tree import Info, Ints, Tree

TOOL_EXCEPTIONS = "tool_exceptions"
"""The key of `Step.info` with exceptions of tools that are results for the agent, each with its place."""

REWARD_PARTS = "reward_parts"
"""The key of `Step.info` with the numbers of which a reward consists, by name, each before its weight."""


def text_in(info: Info) -> str | None:
    """Returns the text of a node: the observation, or the parsed action at its last piece; None without one."""
    text = info.get("text")
    return text if isinstance(text, str) else None


def texts_at(tree: Tree, nodes: Ints, name: str = "text") -> list[str]:
    """Returns the annotation `name` of each of some nodes [M]; "" for a node where it is no text.

    Faster than `text_in` for many nodes.
    """
    found = marks_at(tree, nodes, name)
    if {*map(type, found)} <= {str}:
        return cast("list[str]", found)
    return [text if isinstance(text, str) else "" for text in found]


def marks_at(tree: Tree, nodes: Ints, name: str) -> list[object]:
    """Returns the annotation `name` of each of some nodes [M]; None without one. Faster than `mark_in`."""
    info, places = tree.info, cast("list[int]", nodes.tolist())
    own = [info[node] for node in places]
    try:
        return list(map(itemgetter(name), own))
    except KeyError:
        return [each.get(name) for each in own]


def instructions_in(info: Info) -> str:
    """Returns the instructions in the info of a root; "" without any."""
    return str(info.get("instructions", ""))


def fault_in(info: Info) -> str | None:
    """Returns the fault that ended a path at this node; None without one."""
    fault = info.get("fault")
    return fault if isinstance(fault, str) else None


def refusal_in(info: Info) -> str:
    """Returns why the last refused question of a rollout was refused, in the info of a root; "" without any."""
    return str(info.get("refused", ""))


def rejections_in(info: Info) -> Mapping[str, int]:
    """Returns the errors of an agent program's requests, with their numbers, in the info of a root; {} without any."""
    found = info.get("rejected")
    return cast("Mapping[str, int]", found) if isinstance(found, Mapping) else {}


def replies_in(info: Info, column: str) -> list[str]:
    """Returns the answers of models to the questions of a column about a node; [] without any."""
    texts = info.get(f"appraisal {column}")
    return [str(text) for text in cast("Sequence[object]", texts)] if isinstance(texts, Sequence) else []


def hint_in(info: Info) -> str:
    """Returns the hint with which an action was sampled; "" without one."""
    hint = info.get("hint")
    return hint if isinstance(hint, str) else ""


def temperature_in(info: Info) -> float | None:
    """Returns the temperature at which an action was sampled, where it is not the run's; None elsewhere."""
    temperature = info.get("temperature")
    return float(temperature) if isinstance(temperature, float | int) else None


def needed_tokens_in(info: Info) -> int:
    """Returns the length of the prompt that did not fit the model's context; 0 at other nodes."""
    needed = info.get("needed_tokens")
    return needed if isinstance(needed, int) else 0


def mark_in(info: Info, name: str) -> object:
    """Returns the parser's annotation `name` of an action; None without one."""
    return info.get(name)


def score_in(info: Info) -> float:
    """Returns a search's value of the state after an action alone, without the values below; nan without one."""
    score = info.get("score")
    return float(score) if isinstance(score, int | float) else math.nan


def step_info_in(info: Info) -> Mapping[str, Any]:
    """Returns the environment's `Step.info` at an observation; empty without any."""
    found = info.get("env")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def tool_exceptions_in(info: Info) -> list[str]:
    """Returns the exceptions of tools before an observation whose texts the agent reads as results."""
    return step_info_in(info).get(TOOL_EXCEPTIONS, [])


def reward_parts_in(info: Info) -> Mapping[str, float]:
    """Returns the numbers of which the environment's reward at an observation consists; empty without any."""
    return step_info_in(info).get(REWARD_PARTS, {})


def written_in(info: Info) -> str:
    """Returns the whole text of an action whose parsed text is another; "" where they are the same."""
    raw = info.get("raw")
    return raw if isinstance(raw, str) else ""


def observation_info(observation: Observation, tools: Sequence[Tool] | None) -> dict[str, object]:
    """Returns what the info of a node holds of an observation besides its text: messages, and tools if given.

    A text has no messages in the info.
    """
    listed = () if isinstance(observation, str) else observation
    info: dict[str, object] = {"messages": [*map(message_record, listed)]} if listed else {}
    return info if tools is None else info | {"tools": [*map(tool_record, tools)]}


def action_info(action: AgentAction) -> dict[str, object]:
    """Returns what the info of a node holds of an action besides its text: `Action.text` and the calls."""
    if not isinstance(action, Action) or not action.calls:
        return {}
    return {"said": action.text, "calls": [*map(call_record, action.calls)]}


def messages_in(info: Info) -> tuple[Message, ...]:
    """Returns the messages of an observation; a text is one message of the user, and () is a node without any."""
    if "messages" in info:
        return tuple(map(read_message, _rows(info, "messages")))
    text = text_in(info)
    return () if text is None else (Message(role="user", content=text),)


def observation_in(info: Info) -> Observation:
    """Returns an observation: messages where the info holds them, else its text."""
    return messages_in(info) if "messages" in info else text_in(info) or ""


def calls_in(info: Info) -> tuple[ToolCall | BadCall, ...]:
    """Returns the calls of an action; () without any."""
    return tuple(map(read_call, _rows(info, "calls")))


def action_in(info: Info) -> Action:
    """Returns a parsed action: its text besides the calls, and the calls."""
    said = info.get("said", text_in(info))
    return Action(text=said if isinstance(said, str) else "", calls=calls_in(info))


def tools_in(info: Info) -> tuple[Tool, ...] | None:
    """Returns the tools at a node whose tools differ from those before it; None where they do not."""
    return tuple(map(read_tool, _rows(info, "tools"))) if "tools" in info else None


def tools_at(tree: Tree, node: int) -> tuple[Tool, ...]:
    """Returns the tools at a node."""
    while node >= 0:
        tools = tools_in(tree.info[node])
        if tools is not None:
            return tools
        node = int(tree.parent[node])
    return ()


def _rows(info: Info, name: str) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", info.get(name, []))
