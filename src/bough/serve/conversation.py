"""The chats of one key: prompts of messages, with the tokens of messages that this server sampled."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from bough.context import Renderer
from bough.serve.action import client_action
from bough.serve.parts_text import separated
from bough.serve.thinking import ThinkingMessage, thinking_of, with_thinking
from bough.tree import Message, Tool
from bough.units import MIB

KEEP = 100_000
"""Most sampled messages of one key that are kept; the least recently used is dropped first."""

KEEP_BYTES = 256 * MIB
"""Most memory of their tokens, about."""

TOKEN_BYTES = 36
"""Of a token in a tuple, at most."""

SAMPLES = 1000
"""Most samples of equal content that are kept; the oldest is dropped first."""

CALL_ID = 9
"""Characters of the id of a call: some chat templates require nine letters or digits."""


class Conversations:
    """Renders chats, and keeps the tokens of the messages that were sampled in them.

    A message that the client returns with the content of a sampled one, with its thinking or without, is rendered by
    its sampled tokens. Among several samples with equal content, one after the same messages comes first, then the
    newest.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self._sampled: OrderedDict[str, dict[str, tuple[int, ...]]] = OrderedDict()
        self._kept_tokens = 0

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[int, ...]:
        """The tokens of a prompt."""
        return self.renderer.render(self._spliced(messages), tools)

    def answer(
        self,
        messages: Sequence[Message],
        tokens: Sequence[int],
        choice: int,
        text: str | None = None,
        most_calls: int | None = None,
        tools: Sequence[Tool] = (),
    ) -> ThinkingMessage:
        """The message of sampled tokens, and keeps its tokens if the message is all of them; see `client_action`.

        Args:
            messages: The chat before it.
            tokens: The sampled tokens.
            choice: Its number among the choices of a request, for the ids of its calls.
            text: The text before a stop string, which ends within the tokens; None where the message is whole.
            most_calls: Most calls of the message; None for any number.
            tools: The tools of the request.
        """
        action, before = client_action(self.renderer, tokens, text, most_calls, tools), _history(messages)
        calls = [
            replace(each, call_id=each.call_id or _digest([before, choice, number, *tokens])[:CALL_ID])
            for number, each in enumerate(action.calls)
        ]
        message = ThinkingMessage(
            role="assistant",
            content=action.content,
            tool_calls=tuple(calls),
            tokens=tuple(tokens),
            thinking=action.thinking,
        )
        if action.whole:
            self._keep(_digest(_content(message)), before, message.tokens)
        return message

    def plain(self, text: str) -> tuple[int, ...]:
        """The tokens of a text outside of a chat; texts of special tokens are encoded as plain text."""
        stops = self.renderer.stop_tokens
        return tuple(token for token in self.renderer.write(text) if token not in stops)

    def _keep(self, content: str, before: str, tokens: tuple[int, ...]) -> None:
        samples = self._sampled.setdefault(content, {})
        # The newest is the last.
        self._kept_tokens += len(tokens) - len(samples.pop(before, ()))
        samples[before] = tokens
        if len(samples) > SAMPLES:
            self._kept_tokens -= len(samples.pop(next(iter(samples))))
        self._sampled.move_to_end(content)
        while len(self._sampled) > KEEP or self._kept_tokens * TOKEN_BYTES > KEEP_BYTES:
            _, dropped = self._sampled.popitem(last=False)
            self._kept_tokens -= sum(map(len, dropped.values()))

    def _spliced(self, messages: Sequence[Message]) -> list[Message]:
        found = list(messages)
        # The digest of a history, without its end, grows by one message at a time.
        before = _hash(b"[")
        for place, message in enumerate(messages):
            content = json.dumps(_content(message), sort_keys=True).encode()
            if message.role == "assistant":
                key = _hash(content).hexdigest()
                history = before.copy()
                history.update(b"]")
                tokens = self._tokens(key, history.hexdigest(), thinking_of(message))
                found[place] = replace(message, tokens=tokens) if tokens else self._shown(message)
            else:
                found[place] = self._shown(message)
            before.update((b", " if place else b"") + content)
        return found

    def _shown(self, message: Message) -> Message:
        """A message as the template gets it: with its thinking, and its parts as the template separates them."""
        parted = replace(message, content=separated(message.content, self.renderer.part_separator))
        return replace(parted, content=with_thinking(parted))

    def _tokens(self, key: str, history: str, thinking: str) -> tuple[int, ...]:
        """The tokens of a sampled message; () without any of this content and thinking."""
        samples = self._sampled.get(key)
        if not samples:
            return ()
        self._sampled.move_to_end(key)
        for tokens in (samples.get(history, ()), next(reversed(samples.values()))):
            # A client may leave out the thinking of its history.
            if tokens and (not thinking or thinking == client_action(self.renderer, tokens, None).thinking):
                return tokens
        return ()


def _content(message: Message) -> list[object]:
    """What identifies a message in a chat."""
    calls = [[each.name, each.arguments, each.call_id] for each in message.tool_calls]
    return [message.role, message.content, calls, message.call_id]


def _history(messages: Sequence[Message]) -> str:
    return _digest([_content(each) for each in messages])


def _digest(value: object) -> str:
    return _hash(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _hash(data: bytes) -> blake2b:
    return blake2b(data, digest_size=16)
