"""The choices of a completion."""

from collections.abc import Sequence
from typing import Any

from bough.context import Renderer
from bough.engine import Completion
from bough.serve.choice import Choice, TokenTexts, top
from bough.serve.dialects.chunks import DENIED

WINDOW = 32
"""Tokens after which the text of a token does not depend on earlier ones."""


def text_choice(
    texts: TokenTexts, index: int, choice: Choice, *, logprobs: int | None, token_ids: bool, names: bool
) -> dict[str, Any]:
    """A choice of a completion; `names` writes tokens as "token_id:NUMBER". A denied one has no text."""
    if choice.denied:
        found = {"index": index, "text": "", "finish_reason": DENIED, "logprobs": None}
        return found | ({"token_ids": [], "prompt_token_ids": list(choice.prompt_tokens)} if token_ids else {})
    completion = choice.completion
    found: dict[str, Any] = {
        "index": index,
        "text": texts.renderer.text(completion.tokens) if choice.text is None else choice.text,
        "finish_reason": str(completion.finish),
        "logprobs": None if logprobs is None else _text_logprobs(texts, completion, names=names),
    }
    if token_ids:
        found |= {"token_ids": list(completion.tokens), "prompt_token_ids": list(choice.prompt_tokens)}
    return found


def _text_logprobs(texts: TokenTexts, completion: Completion, *, names: bool) -> dict[str, Any]:
    def name(token: int) -> str:
        return f"token_id:{token}" if names else texts.text(token)

    return {
        "tokens": [name(token) for token in completion.tokens],
        "token_logprobs": None if completion.logprobs is None else list(completion.logprobs),
        "top_logprobs": [
            {name(token): value for token, value in top(completion, place)} for place in range(len(completion.tokens))
        ],
        "text_offset": offsets(texts.renderer, completion.tokens),
    }


def offsets(renderer: Renderer, tokens: Sequence[int]) -> list[int]:
    """The number of characters before each token.

    A text is as much longer than its begin as their last tokens show, so that no text is decoded whole for each token.
    """
    found = [0]
    for known in range(0, len(tokens), WINDOW):
        first = max(known - WINDOW, 0)
        begin = found[known] - len(renderer.text(tokens[first:known]))
        places = range(known + 1, min(known + WINDOW, len(tokens)) + 1)
        found += [begin + len(renderer.text(tokens[first:place])) for place in places]
    return found[: len(tokens)]
