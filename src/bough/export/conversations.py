"""Whole paths as conversations in OpenAI's form."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from bough.tree import (
    AgentAction,
    Kind,
    Message,
    Rewarded,
    Ternary,
    Tree,
    action_in,
    calls_in,
    counted,
    instructions_in,
    messages_in,
    openai_conversation,
    path,
    sum_to_root,
    text_in,
    tool_record,
    tools_at,
    written_in,
)

Row: TypeAlias = dict[str, Any]


def conversations(rewarded: Rewarded) -> Iterator[Row]:
    """A row for each counted path: `{"messages", "tools", "task", "reward", "success"}`, without unknown members.

    The messages are those of the environment and the agent, whatever part of them the agent's context shows. Text that
    the parser does not keep is kept.
    """
    for leaf in counted(rewarded.tree).tolist():
        if (row := conversation(rewarded, leaf)) is not None:
            yield row


def conversation(rewarded: Rewarded, node: int) -> Row | None:
    """The row of `conversations` of a path up to a node, whatever its outcome; None without an action."""
    tree = rewarded.tree
    entries = _entries(tree, node)
    if all(isinstance(each, Message) for each in entries):
        return None
    tools, success = tools_at(tree, node), Ternary(int(tree.success[node]))
    row: Row = {"messages": openai_conversation(entries)}
    row |= {"tools": [*map(tool_record, tools)]} if tools else {}
    row |= {"task": tree.task.id, "reward": float(sum_to_root(tree, rewarded.reward)[node])}
    return row | ({} if success is Ternary.UNKNOWN else {"success": success is Ternary.YES})


def _entries(tree: Tree, leaf: int) -> list[Message | AgentAction]:
    """The messages and the actions of a path, the instructions first."""
    system = instructions_in(tree.info[0])
    found: list[Message | AgentAction] = [Message(role="system", content=system)] if system else []
    shown = 0
    for node in map(int, path(tree, leaf)):
        info, kind = tree.info[node], tree.kind[node]
        if kind == Kind.ACTION:
            # An action of several pieces has its text at the last one.
            if text_in(info) is not None:
                text = (written_in(info) or text_in(info) or "").strip()
                found.append(action_in(info) if calls_in(info) else text)
                shown = 0
            continue
        observation = [each for each in messages_in(info) if each.content or each.role != "user"]
        # A rebuilt context without an action before it repeats the observation above it.
        found += observation[shown:]
        shown = len(observation)
    return found
