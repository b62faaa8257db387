"""Tokens of a conversation for a chat server: UTF-8 bytes, and marks around the messages."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.tree import Action, AgentAction, Message, Tool, action_text

SYSTEM, USER, ASSISTANT, END = range(256, 260)
"""The marks: a message begins with its role's and ends with END."""

ROLES = {SYSTEM: "system", USER: "user", ASSISTANT: "assistant"}

MARKS = {role: mark for mark, role in ROLES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Renders a conversation as bytes and marks; `conversation` decodes them to the messages of a request.

    Any text is representable, for any server model. Contexts append, truncate and rebuild these tokens as usual.

    Example:
        >>> messages = Message(role="system", content="Go."), Message(role="user", content="up?")
        >>> Messages().render(messages)
        (256, 71, 111, 46, 259, 257, 117, 112, 63, 259, 258)
        >>> conversation(Messages().render(messages))
        [{'role': 'system', 'content': 'Go.'}, {'role': 'user', 'content': 'up?'}]

    Attributes:
        stop_tokens: The end of a message.
    """

    stop_tokens: tuple[int, ...] = (END,)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        """Render a whole context, up to the generation prompt.

        Raises:
            ValueError: when there are tools, or a message of a role that a chat without tools lacks.
        """
        roles = {message.role for message in messages} - {*MARKS}
        if tools or roles:
            raise ValueError(
                f'OpenAi(api="chat"): got {len(tools)} tools and messages of the roles {sorted(roles)}; need '
                'api="completions", where the template of the model renders them'
            )
        return (*(token for message in messages for token in _message(message)), ASSISTANT)

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        """The tokens from the last assistant's message to the generation prompt, with the messages in between."""
        last = max(place for place, message in enumerate(messages) if message.role == "assistant")
        written = messages[last].tokens
        return (*_closed(written)[len(written) :], *self.render(messages[last + 1 :], tools))

    def write(self, action: AgentAction) -> tuple[int, ...]:
        """The tokens of an action that the policy did not sample, with a stop token."""
        return (*_bytes(action_text(action)), END)

    def parse(self, tokens: Sequence[int]) -> Action:
        """The calls in the tokens of an action."""
        return Action(text=self.text(tokens))

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


def _message(message: Message) -> tuple[int, ...]:
    return (MARKS[message.role], *(_closed(message.tokens) if message.tokens else (*_bytes(message.content), END)))


def _bytes(text: str) -> bytes:
    # A lone surrogate has no UTF-8 encoding.
    return text.encode("utf-8", "replace")


def _closed(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tokens if tokens[-1:] == (END,) else (*tokens, END)
