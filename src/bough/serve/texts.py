"""Refuses texts that are far too long, by the tokens of their begin: tokenising them whole would take seconds."""

import asyncio
import json
import time
from collections.abc import Sequence

from bough.serve.body import REST
from bough.serve.session import Session
from bough.serve.thinking import with_thinking
from bough.tree import Message, Tool, call_record, tool_record

CONTEXTS = 4
"""Texts of so many contexts are too long; a template may drop a model's earlier thinking, and keeps the rest."""

CHARACTERS = 4
"""Of a token of prose: shorter texts are tokenised at once."""


def written(messages: Sequence[Message], tools: Sequence[Tool]) -> list[str]:
    """The texts of a chat."""
    rows = [*map(tool_record, tools), *(call_record(call) for message in messages for call in message.tool_calls)]
    return [*map(with_thinking, messages), *(json.dumps(row, ensure_ascii=False) for row in rows)]


async def check_texts(session: Session, texts: Sequence[str], turn: asyncio.Lock) -> None:
    """Refuse texts of more than `CONTEXTS` contexts, in pieces of as many characters; other requests go on in between.

    Texts of few tokens a character are tokenised to their end, and the prompt's length decides.

    Args:
        session: The session.
        texts: The texts of a prompt.
        turn: Held while long texts are tokenised, so that those of many clients are no more work at a time.

    Raises:
        ApiError: 400, code "context_length_exceeded".
    """
    most, tokens = CONTEXTS * session.context_tokens, 0
    if sum(map(len, texts)) <= CHARACTERS * most:
        return
    async with turn:
        for text in texts:
            for begin in range(0, len(text), most):
                began = time.monotonic()
                tokens += len(session.conversations.renderer.write(text[begin : begin + most])) - 1
                await asyncio.sleep(REST * (time.monotonic() - began))
                if tokens > most:
                    session.check(tokens)
