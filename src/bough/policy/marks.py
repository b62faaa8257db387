"""Marks of messages in chat templates: tokens that contents must not have, and plain text that they can have."""

import re
from collections.abc import Sequence
from typing import Any

from bough.policy.calls.lost import TAG
from bough.tree.thinking import THINK, THINK_END

THINKING = (THINK, THINK_END)
"""Marks that an assistant's message of any author keeps as tokens."""

MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", *THINKING)
"""Marks of calls, results and thinking that some tokenizers have as tokens, though not as special ones."""

CONTROL = re.compile(r"<[|\uff5c].+[|\uff5c]>")
"""The shape of a mark that no text of people has."""


def used_marks(tokenizer: Any) -> set[str]:
    """Added tokens that are marks, special or not: the template names them, or their shape tells it."""
    template = str(tokenizer.chat_template)
    texts = {each.content for each in tokenizer.added_tokens_decoder.values()}
    # Other added tokens are blanks, words and parts of texts, such as Gemma's tags of HTML.
    return {
        text for text in texts if text in MARKS or CONTROL.fullmatch(text) or (TAG.fullmatch(text) and text in template)
    }


def plain_marks(texts: Sequence[str], end: str, hidden: re.Pattern[str]) -> tuple[str, ...]:
    """The marks that are plain text, so that a content can imitate them.

    Args:
        texts: A template's texts around contents.
        end: Its text after a user's message; without any token or mark it is a mark as a whole.
        hidden: Matches the texts of tokens that no content can have.
    """
    found = [mark for text in texts for mark in TAG.findall(hidden.sub("", text))]
    whole = [] if found or hidden.search(end) or not end.strip() else [end.strip()]
    return tuple(dict.fromkeys([*found, *whole]))
