"""Logged conversations as trees in a policy's format."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from bough.context import CallParser, as_written
from bough.rewrite.revise import PathBuilder
from bough.rollout import NodeDraft, PolicyFormat, TreeBuilder
from bough.store import Conversation
from bough.tree import (
    Action,
    Kind,
    Message,
    Observation,
    Outcome,
    Source,
    Task,
    Tree,
    message_record,
    tool_record,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrees:
    """Conversations as trees.

    Attributes:
        trees: One for each task and first prompt, in the order of their first rows.
        too_long: Number of conversations that exceed the model's context; they are in no tree.
    """

    trees: tuple[Tree, ...]
    too_long: int


def message_trees(conversations: Sequence[Conversation], policy_format: PolicyFormat) -> MessageTrees:
    """The trees of conversations.

    Rows of one task share equal beginnings and branch where they differ; each has a last action and an end of its own.
    Messages of assistants are written in the policy's format. Examples have the source `TEACHER`, other messages of
    assistants `FORCED`. A row without a task belongs to the task of its first prompt.

    Args:
        conversations: The rows.
        policy_format: The policy's formats, and the model's context.

    Raises:
        ValueError: when a conversation has calls and the parser takes none, or two messages of assistants in a row.
    """
    grown: dict[tuple[str, tuple[int, ...]], _Trie] = {}
    too_long = 0
    for each in conversations:
        path = _path(each, policy_format)
        if policy_format.max_tokens is not None and path.longest > policy_format.max_tokens:
            too_long += 1
            continue
        nodes = path.builder.nodes
        key = path.builder.task.id, tuple(nodes[0].tokens)
        grown.setdefault(key, _Trie(path.builder.task, nodes[0])).add(nodes)
    return MessageTrees(trees=tuple(trie.builder.done() for trie in grown.values()), too_long=too_long)


def _path(conversation: Conversation, policy_format: PolicyFormat) -> PathBuilder:
    """One conversation as a tree of one path."""
    messages, tools = conversation.messages, conversation.tools
    begin = 1 if messages[0].role == "system" and messages[1].role != "assistant" else 0
    first = next(place for place, each in enumerate(messages) if each.role == "assistant")
    task = Task(id=conversation.task or f"log-{_digest(messages[:first], conversation)}")
    system = messages[0].content if begin else ""
    path = PathBuilder(task, system, (_observation(messages[begin:first]), tools), policy_format)
    seen: list[Message] = [*messages[begin:first]]
    node = None
    for message, learned in zip(messages[first:], conversation.learned[first:], strict=True):
        if message.role != "assistant":
            seen.append(message)
            continue
        if not seen:
            raise ValueError(f"task {task.id}: got two messages of the assistant in a row; need one between them")
        if message.tool_calls and not isinstance(policy_format.parser, CallParser):
            raise ValueError(
                f"task {task.id}: got calls of tools and parser={type(policy_format.parser).__name__}, which takes "
                "none; need parser=ToolCalls()"
            )
        action = Action(text=message.content, calls=message.tool_calls) if message.tool_calls else message.content
        source = Source.TEACHER if learned else Source.FORCED
        tokens = policy_format.renderer.write(as_written(policy_format.parser, action))
        node = path.turn((_observation(seen), tools), tokens, source)
        seen = []
    assert node is not None
    reward = conversation.reward
    node.env_reward = float(conversation.success or 0.0) if reward is None else reward
    path.end((_observation(seen) if seen else "", tools), conversation.success, Outcome.TERMINATED)
    return path


class _Trie:
    """A tree whose paths share equal beginnings."""

    def __init__(self, task: Task, root: NodeDraft) -> None:
        self.builder = TreeBuilder(task)
        self.builder.add(root)
        self._found: dict[tuple[int, str], int] = {}
        self._children: dict[int, int] = {}

    def add(self, nodes: Sequence[NodeDraft]) -> None:
        """Add a path from the root; its last action and what follows are not shared."""
        last = max(place for place, node in enumerate(nodes) if node.kind is Kind.ACTION)
        parent = 0
        for place, node in enumerate(nodes[1:], start=1):
            key = parent, json.dumps([node.kind, list(node.tokens), node.source, node.info], sort_keys=True)
            if place < last and key in self._found:
                parent = self._found[key]
                continue
            node.parent, node.branch = parent, self._children.get(parent, 0)
            self._children[parent] = node.branch + 1
            parent = self.builder.add(node)
            if place < last:
                self._found[key] = parent


def _observation(messages: Sequence[Message]) -> Observation:
    """Messages as an observation; one message of the user in its short form."""
    alone = len(messages) == 1 and messages[0].role == "user"
    return messages[0].content if alone else tuple(messages)


def _digest(messages: Sequence[Message], conversation: Conversation) -> str:
    rows = [*map(message_record, messages), *map(tool_record, conversation.tools)]
    return blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=8).hexdigest()
