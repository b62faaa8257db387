"""Converts paths of trees to text or messages: exactly the prompt and the sampled text, or an error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bough.context import Turn, conversation
from bough.policy.chat import ChatRenderer
from bough.tree import (
    AgentAction,
    BadCall,
    Kind,
    Message,
    Observation,
    Source,
    ToolCall,
    Tree,
    action_in,
    calls_in,
    context,
    instructions_in,
    observation_in,
    openai_messages,
    path,
    text_in,
    text_start,
    tool_record,
    tools_at,
    turn_start,
)

Row: TypeAlias = dict[str, Any]
"""A message in OpenAI's form: role, content, and calls or the id of a call."""


class NotRepresentable(ValueError):
    """The row has no exact form in this format; the message has the reason, without naming the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcriber:
    """Converts the context and the tokens of a tree's actions to text or messages.

    Attributes:
        renderer: The policy's, whose tokenizer made the tokens.
        messages: Whether to return messages; otherwise text with chat template tokens.
    """

    renderer: ChatRenderer
    messages: bool

    def read(self, tree: Tree, node: int, written: int = 0) -> str | list[Row]:
        """The policy's context before token `written` of an action.

        Raises:
            NotRepresentable: when the chat format cannot reproduce the context from its last turns.
        """
        if self.messages:
            if written:
                raise NotRepresentable("within an action")
            return self._chat(tree, node)
        return self.renderer.verbatim((*context(tree, node).tolist(), *_written(tree, node)[:written]))

    def completion(self, tree: Tree, nodes: Sequence[int], by: Source = Source.SAMPLED) -> str | list[Row]:
        """The path from the first of some actions to the last, both included, all with source `by`.

        Args:
            tree: The tree.
            nodes: The last node of each action.
            by: The source of the actions.

        Raises:
            NotRepresentable: when a context was rebuilt in between, an action has another source, or the last action is
                incomplete.
        """
        begin = turn_start(tree)
        first, last = int(begin[nodes[0]]), nodes[-1]
        if np.any(tree.kind[tree.parent == last] == Kind.ACTION):
            raise NotRepresentable("it ends within an action")
        walk = path(tree, last)
        between = [int(node) for node in walk if node >= first]
        start = text_start(tree)
        if start[first] != start[last]:
            raise NotRepresentable("its context is rebuilt on the path")
        if any(tree.kind[node] == Kind.ACTION and tree.source[node] != by for node in between):
            raise NotRepresentable("an action on the path has another source")
        if not self.messages:
            added = [token for node in between for token in _written(tree, node)]
            return self._rest(context(tree, first).tolist(), added)
        before = self._chat(tree, first)
        after = self._chat(tree, int(begin[last]))
        if after[: len(before)] != before:
            raise NotRepresentable("its context is rebuilt on the path")
        if calls_in(tree.info[last]):
            *_, answer = openai_messages(
                [*_conversation(*_past(tree, int(begin[last]))), _message(action_in(tree.info[last]))]
            )
        else:
            answer = {"role": "assistant", "content": self.renderer.text(_whole(tree, last)).strip()}
        return [*after[len(before) :], answer]

    def tools(self, tree: Tree, node: int) -> Row:
        """The tools at a node as a member of a row; nothing in text, or without tools."""
        tools = tools_at(tree, node) if self.messages else ()
        return {"tools": [*map(tool_record, tools)]} if tools else {}

    def actions_text(self, tree: Tree, nodes: Sequence[int]) -> str:
        """The text of some actions, a line each, without observations; `nodes` are the last nodes of the actions."""
        return "\n".join(self.renderer.text(_whole(tree, node)) for node in nodes)

    def _rest(self, before: Sequence[int], added: Sequence[int]) -> str:
        """The text that tokens add: a tokenizer may decode the first token of a text differently than later ones."""
        begin, whole = self.renderer.verbatim(before), self.renderer.verbatim((*before, *added))
        if not whole.startswith(begin):
            raise NotRepresentable("the text of its tokens depends on later tokens")
        return whole[len(begin) :]

    def _chat(self, tree: Tree, node: int) -> list[Row]:
        """The messages that the chat format renders as exactly the context."""
        system, past, observation = _past(tree, node)
        read, tools = tuple(context(tree, node).tolist()), tools_at(tree, node)
        for first in range(len(past) + 1):
            shown = past[first:]
            messages = conversation(system, shown, observation)
            if self.renderer.render(messages, tools) == read:
                plain = not tools and all(isinstance(turn.action, str) for turn in shown)
                if plain and isinstance(observation, str):
                    return self.renderer.messages(messages)
                return openai_messages(_conversation(system, shown, observation))
        raise NotRepresentable("its context is no plain chat of its last turns")


def _past(tree: Tree, node: int) -> tuple[str, list[Turn], Observation]:
    """The instructions, the turns before an action, and the last observation."""
    past: list[Turn] = []
    observation: Observation = ""
    tokens: tuple[int, ...] = ()
    action: AgentAction = ""
    for place in map(int, path(tree, node)[:-1]):
        if tree.kind[place] == Kind.ACTION:
            tokens, info = (*tokens, *tree.tokens_of(place).tolist()), tree.info[place]
            action = action_in(info) if calls_in(info) else text_in(info) or ""
            continue
        if tokens:
            past.append(Turn(observation=observation, action=action, tokens=tokens))
            tokens = ()
        observation = observation_in(tree.info[place])
    if tokens:
        raise NotRepresentable("within an action")
    return instructions_in(tree.info[0]), past, observation


def _conversation(system: str, past: Sequence[Turn], observation: Observation) -> list[Message]:
    """The messages of a context, with the parsed text and calls of sampled messages."""
    written = iter([_message(turn.action) for turn in past])
    return [next(written) if each.tokens else each for each in conversation(system, past, observation)]


def _message(action: AgentAction) -> Message:
    """An action as an assistant's message; bad calls stay in its text."""
    if isinstance(action, str):
        return Message(role="assistant", content=action)
    good = tuple(call for call in action.calls if isinstance(call, ToolCall))
    bad = [call.text for call in action.calls if isinstance(call, BadCall)]
    return Message(role="assistant", content="\n".join([*filter(None, [action.text]), *bad]), tool_calls=good)


def _whole(tree: Tree, node: int) -> list[int]:
    """The tokens of an action up to its piece `node`."""
    walk = path(tree, node)
    return [token for piece in walk[walk >= turn_start(tree)[node]] for token in _written(tree, int(piece))]


def _written(tree: Tree, node: int) -> list[int]:
    return [int(token) for token in tree.tokens_of(node)]
