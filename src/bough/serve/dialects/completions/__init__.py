"""OpenAI's completions."""

from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bough.serve.core import Core, choice_rows
from bough.serve.dialects.chunks import head, shown_usage, streamed
from bough.serve.dialects.completions.answer import text_choice
from bough.serve.dialects.completions.request import CompletionRequest
from bough.serve.dialects.usage import usage_of
from bough.serve.request import parse
from bough.serve.session import Prompt


class Completions:
    """The handler of `POST /v1/completions`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def create(self, request: Request) -> Response:
        """The completions of texts or tokens."""
        session = self._core.session(request)
        body = await self._core.bodies.read(request, partial(parse, CompletionRequest))
        model, conversations = session.model(body.model), session.conversations
        texts: list[tuple[int, ...]] = []
        for text in body.prompts:
            if isinstance(text, str):
                await self._core.check_texts(session, [text])
            texts.append(conversations.plain(text) if isinstance(text, str) else tuple(text))
        prompts = [
            Prompt(
                tokens=tokens,
                sampling=body.sampling(session.sampling, top_probs=body.logprobs or 0, max_tokens=body.max_tokens),
                stop_tokens=(*conversations.renderer.stop_tokens, *(body.stop_token_ids or ())),
                seed=body.seed,
                choice=choice,
                stops=body.stops,
            )
            for tokens in texts
            for choice in range(body.n or 1)
        ]
        choices = await self._core.complete(request, session, prompts, None, logprobs=body.logprobs is not None)
        rows = await choice_rows(
            text_choice,
            session,
            choices,
            logprobs=body.logprobs,
            token_ids=bool(body.return_token_ids),
            names=bool(body.return_tokens_as_token_ids),
        )
        counts, first = shown_usage(usage_of(choices, len(texts))), head("text_completion", model)
        if not body.stream:
            return JSONResponse(first | {"choices": rows, "usage": counts})
        return streamed(first, rows, counts, body, {})
