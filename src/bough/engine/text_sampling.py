"""The limit of an action for a model whose tokens are bytes of text."""

from dataclasses import replace

from bough.engine.engine import Sampling
from bough.engine.messages import Messages

TEXT_TOKENS = 4096
"""Least `max_tokens` of an agent whose tokens are bytes of text: a short text and several calls."""


def text_sampling(sampling: Sampling, renderer: object) -> Sampling:
    """The sampling settings of an agent for a model with this renderer.

    A world's `max_tokens` counts tokens of its own policy. With `Messages` each byte of text is a token, so the same
    action has far more of them: `max_tokens` becomes at least `TEXT_TOKENS`.
    """
    if not isinstance(renderer, Messages):
        return sampling
    return replace(sampling, max_tokens=max(TEXT_TOKENS, sampling.max_tokens))
