"""Masking of an observation in the tokens of a context."""

from bough.appraise import Masked
from bough.context import Renderer
from bough.tree import Message

Tokens = tuple[int, ...]


def mask_observation(renderer: Renderer, tokens: Tokens, masked: Masked) -> Tokens:
    """The context with another text in place of its last observation, the same number of tokens.

    The tokens that both observations begin and end with are those of the format: the end of the action, the role, the
    start of the next action. They stay. Of the tokens between, a short text repeats its last one, a long one is cut.
    A format that cannot append the messages leaves the context as it is.

    Args:
        renderer: The policy's.
        tokens: The context.
        masked: The observation and the messages in its place.
    """
    seen = tokens[len(tokens) - masked.last :]
    action = Message(role="assistant", content=renderer.text(masked.action), tokens=masked.action)
    other = renderer.extend((Message(role="user", content=""), action, *masked.messages), masked.tools)
    if other is None:
        return tokens
    begin = _common(seen, other)
    end = _common(seen[begin:][::-1], other[begin:][::-1])
    count, text = len(seen) - begin - end, other[begin : len(other) - end]
    if count and not text:
        # The observation holds the other text and more: what it ends with fills the place.
        text = other[max(0, begin - 1) : begin]
    filled = (*text, *text[-1:] * (count - len(text)))[:count]
    return (*tokens[: len(tokens) - masked.last + begin], *filled, *seen[len(seen) - end :])


def _common(one: Tokens, two: Tokens) -> int:
    """The number of first tokens that are the same."""
    same = 0
    for mine, other in zip(one, two, strict=False):
        if mine != other:
            break
        same += 1
    return same
