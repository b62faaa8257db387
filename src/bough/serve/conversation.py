"""The chats of one key: prompts of messages, with the tokens of messages that this server sampled."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from bough.context import Renderer
from bough.tree import BadCall, Message, Tool, ToolCall

KEEP = 100_000
"""Most sampled messages of one key that are kept; the least recently used is dropped first."""

CALL_ID = 9
"""Characters of the id of a call: some chat templates require nine letters or digits."""


class Conversations:
    """Renders chats, and keeps the tokens of the messages that were sampled in them.

    A message that the client returns with the content of a sampled one is rendered by its sampled tokens. Among
    several samples with equal content, one after the same messages comes first, then the newest.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self._sampled: OrderedDict[str, dict[str, tuple[int, ...]]] = OrderedDict()

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[int, ...]:
        """The tokens of a prompt."""
        return self.renderer.render(self._spliced(messages), tools)

    def answer(
        self, messages: Sequence[Message], tokens: Sequence[int], choice: int, text: str | None = None
    ) -> Message:
        """The message of sampled tokens, and keeps its tokens; those of a text before a stop string are not kept.

        A part that begins like a call and is none is text.

        Args:
            messages: The chat before it.
            tokens: The sampled tokens.
            choice: Its number among the choices of a request, for the ids of its calls.
            text: The text before a stop string, which ends within the tokens; None where the message is whole.
        """
        action = self.renderer.parse(tokens)
        bad = [each.text for each in action.calls if isinstance(each, BadCall)]
        calls = [each for each in action.calls if isinstance(each, ToolCall)]
        before = _history(messages)
        calls = [
            replace(each, call_id=each.call_id or _digest([before, choice, number, *tokens])[:CALL_ID])
            for number, each in enumerate(calls)
        ]
        # Without calls, special tokens have no meaning for the client.
        parts = [each for each in (action.text, *bad) if each]
        plain = self.renderer.text(tokens) if text is None else text
        content = "\n".join(parts) if action.calls else plain
        message = Message(role="assistant", content=content, tool_calls=tuple(calls), tokens=tuple(tokens))
        if text is None:
            self._keep(_digest(_content(message)), before, message.tokens)
        return message

    def plain(self, text: str) -> tuple[int, ...]:
        """The tokens of a text outside of a chat; texts of special tokens are encoded as plain text."""
        stops = self.renderer.stop_tokens
        return tuple(token for token in self.renderer.write(text) if token not in stops)

    def _keep(self, content: str, before: str, tokens: tuple[int, ...]) -> None:
        samples = self._sampled.setdefault(content, {})
        # The newest is the last.
        samples.pop(before, None)
        samples[before] = tokens
        self._sampled.move_to_end(content)
        while len(self._sampled) > KEEP:
            self._sampled.popitem(last=False)

    def _spliced(self, messages: Sequence[Message]) -> list[Message]:
        found: list[Message] = []
        for place, message in enumerate(messages):
            if message.role == "assistant":
                content = _digest(_content(message))
                if samples := self._sampled.get(content):
                    self._sampled.move_to_end(content)
                    tokens = samples.get(_history(messages[:place])) or next(reversed(samples.values()))
                    found.append(replace(message, tokens=tokens))
                    continue
            found.append(message)
        return found


def _content(message: Message) -> list[object]:
    """What identifies a message in a chat."""
    calls = [[each.name, each.arguments, each.call_id] for each in message.tool_calls]
    return [message.role, message.content, calls, message.call_id]


def _history(messages: Sequence[Message]) -> str:
    return _digest([_content(each) for each in messages])


def _digest(value: object) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
