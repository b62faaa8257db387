"""OpenAI's chat completions."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bough.serve.core import ChatTurn, Core, choice_rows
from bough.serve.dialects.chat.answer import chat_choice, chat_chunks
from bough.serve.dialects.chat.request import read_chat
from bough.serve.dialects.chunks import head, shown_usage, streamed
from bough.serve.dialects.usage import usage_of


class Chat:
    """The handler of `POST /v1/chat/completions`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def create(self, request: Request) -> Response:
        """The next message of a chat."""
        session = self._core.session(request)
        body, messages, settings = await self._core.bodies.read(request, read_chat)
        model, most = session.model(body.model), body.max_completion_tokens or body.max_tokens
        turn = ChatTurn(
            messages=messages,
            tools=settings.offered,
            sampling=body.sampling(session.sampling, top_probs=body.top_logprobs or 0, max_tokens=most),
            stops=body.stops,
            seed=body.seed,
            choices=body.n or 1,
            logprobs=bool(body.logprobs),
            parallel_calls=body.parallel_tool_calls is not False,
            restriction=settings.restriction,
        )
        choices = await self._core.answer(request, session, turn)
        token_ids = bool(body.return_token_ids)
        rows = await choice_rows(chat_choice, session, choices, logprobs=turn.logprobs, token_ids=token_ids)
        extra = {"prompt_token_ids": list(choices[0].prompt_tokens)} if token_ids else {}
        counts = shown_usage(usage_of(choices))
        if not body.stream:
            return JSONResponse(head("chat.completion", model) | {"choices": rows, "usage": counts} | extra)
        return streamed(head("chat.completion.chunk", model), list(chat_chunks(rows)), counts, body, extra)
