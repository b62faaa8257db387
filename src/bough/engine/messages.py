"""Tokens of a conversation for a chat server: UTF-8 bytes, and marks around the messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

SYSTEM, USER, ASSISTANT, END = range(256, 260)
"""The marks: a message begins with its role's and ends with END."""

ROLES = {SYSTEM: "system", USER: "user", ASSISTANT: "assistant"}


@runtime_checkable
class PastTurn(Protocol):
    """One past turn: the observation, and the action (with END if it is complete)."""

    @property
    def observation(self) -> str:
        """The observation."""
        ...

    @property
    def tokens(self) -> tuple[int, ...]:
        """The action's tokens."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Renders a conversation as bytes and marks; `conversation` decodes them to the messages of a request.

    Any text is representable, for any server model. Contexts append, truncate and rebuild these tokens as usual.

    Example:
        >>> Messages().render("Go.", (), "up?")
        (256, 71, 111, 46, 259, 257, 117, 112, 63, 259, 258)
        >>> conversation(Messages().render("Go.", (), "up?"))
        [{'role': 'system', 'content': 'Go.'}, {'role': 'user', 'content': 'up?'}]

    Attributes:
        stop_tokens: The end of a message.
    """

    stop_tokens: tuple[int, ...] = (END,)

    def render(self, system: str, past: Sequence[PastTurn], observation: str) -> tuple[int, ...]:
        """Render a whole context, up to the generation prompt."""
        tokens = list(_message(SYSTEM, system)) if system else []
        for turn in past:
            tokens += [*_message(USER, turn.observation), ASSISTANT, *_closed(turn.tokens)]
        return (*tokens, *_message(USER, observation), ASSISTANT)

    def extend(self, system: str, past: Sequence[PastTurn], observation: str) -> tuple[int, ...]:  # noqa: ARG002
        """The tokens from the last action of `past` to the generation prompt, with `observation` in between."""
        written = past[-1].tokens
        return (*_closed(written)[len(written) :], *_message(USER, observation), ASSISTANT)

    def write(self, action: str) -> tuple[int, ...]:
        """The tokens of an action that the policy did not sample, with a stop token."""
        return (*_bytes(action), END)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without marks. A character cut in the middle becomes a replacement character."""
        return bytes(token for token in tokens if token < SYSTEM).decode("utf-8", "replace")


def conversation(tokens: Sequence[int]) -> list[dict[str, str]]:
    """The messages of tokens, without the assistant message to generate.

    Raises:
        ValueError: when the tokens are not a conversation that ends with the start of an assistant message.
    """
    messages: list[dict[str, str]] = []
    begin = 0
    while begin < len(tokens) - 1:
        try:
            end = tokens.index(END, begin)
        except ValueError:
            break
        inside = tokens[begin + 1 : end]
        if tokens[begin] not in ROLES or any(not 0 <= token < SYSTEM for token in inside):
            break
        messages.append({"role": ROLES[tokens[begin]], "content": bytes(inside).decode("utf-8", "replace")})
        begin = end + 1
    if not messages or tuple(tokens[begin:]) != (ASSISTANT,):
        raise ValueError(
            f"generate: got tokens that are no conversation from position {begin} on; need messages that end with "
            "the start of an assistant message: take the engine's own renderer, Agent(renderer=engine.renderer, ...), "
            "and an explorer that writes whole actions"
        )
    return messages


def _message(role: int, text: str) -> tuple[int, ...]:
    return (role, *_bytes(text), END)


def _bytes(text: str) -> bytes:
    # A lone surrogate has no UTF-8 encoding.
    return text.encode("utf-8", "replace")


def _closed(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tokens if tokens[-1:] == (END,) else (*tokens, END)
