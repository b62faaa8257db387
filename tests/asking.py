"""Models whose replies a function computes."""

from collections.abc import Awaitable, Callable
from typing import Any

from bough.ask import Answer, Query, QueryClient, Reply
from bough.ask.answer import answer_of
from bough.tree import Verdict


def query_client(reply: Callable[[str], Awaitable[str | Verdict]]) -> QueryClient:
    """A `QueryClient` whose model replies to a prompt with a text, or fails with a verdict."""

    async def ask(query: Query[Any]) -> Answer[Any]:
        returned = [await reply(query.prompt) for _ in range(query.n)]
        replies = [
            Reply(verdict=each) if isinstance(each, Verdict) else Reply(verdict=Verdict.OK, text=each)
            for each in returned
        ]
        return answer_of(replies, query.read)

    return ask
