"""Refuses texts that are far too long, by the tokens of their begin: tokenising them whole would take seconds."""

import asyncio
import json
from collections.abc import Sequence

from bough.serve.session import Session
from bough.tree import Message, Tool, call_record, tool_record

CONTEXTS = 4
"""Texts of so many contexts are too long; a template may drop a model's earlier thinking, and keeps the rest."""

CHARACTERS = 4
"""Of a token of prose: shorter texts are tokenised at once."""


def written(messages: Sequence[Message], tools: Sequence[Tool]) -> list[str]:
    """The texts of a chat."""
    rows = [*map(tool_record, tools), *(call_record(call) for message in messages for call in message.tool_calls)]
    return [*(message.content for message in messages), *(json.dumps(row, ensure_ascii=False) for row in rows)]


async def check_texts(session: Session, texts: Sequence[str]) -> None:
    """Refuse texts of more than `CONTEXTS` contexts, in pieces of as many characters; other requests go on in between.

    Texts of few tokens a character are tokenised to their end, and the prompt's length decides.

    Raises:
        ApiError: 400, code "context_length_exceeded".
    """
    most, tokens = CONTEXTS * session.context_tokens, 0
    if sum(map(len, texts)) <= CHARACTERS * most:
        return
    for text in texts:
        for begin in range(0, len(text), most):
            tokens += len(session.conversations.renderer.write(text[begin : begin + most])) - 1
            if tokens > most:
                session.check(tokens)
            await asyncio.sleep(0)
