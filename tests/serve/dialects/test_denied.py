"""An answer that a guard denies: the client gets the reason, in the form of its dialect."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.serve.dialects.table import at
from tests.serve.wire import httpx, scripted, sessions

from bough.serve import Prompt, Session
from bough.serve.app import make_app
from bough.serve.session import Completed

HI = [{"role": "user", "content": "hi"}]


class Denying:
    """Sessions whose answers are denied."""

    def find(self, key: str) -> Session:
        session = sessions(scripted("yes")).find(key)
        assert session is not None

        async def complete(prompt: Prompt) -> Completed:
            assert session is not None
            return replace(await session.complete(prompt), denied="not here")

        return replace(session, complete=complete)


@pytest.mark.parametrize(
    ("path", "body", "want"),
    [
        (
            "chat/completions",
            {"messages": HI},
            {"choices.0.message.refusal": "not here", "choices.0.finish_reason": "content_filter"},
        ),
        (
            "responses",
            {"input": "hi", "include": ["message.output_text.logprobs"]},
            {
                "output.0.content": [{"type": "refusal", "refusal": "not here"}],
                "status": "incomplete",
                "incomplete_details.reason": "content_filter",
            },
        ),
        (
            "messages",
            {"messages": HI, "max_tokens": 9},
            {"content": [{"type": "text", "text": "not here"}], "stop_reason": "refusal"},
        ),
    ],
    ids=["chat", "responses", "messages"],
)
def test_a_denied_answer_is_its_reason(path: str, body: dict[str, Any], want: dict[str, Any]) -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(app=make_app(Denying()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            answer = (await http.post(f"/v1/{path}", json={"model": "tiny"} | body)).json()
            for place, value in want.items():
                assert at(answer, place) == value
            streamed = (await http.post(f"/v1/{path}", json={"model": "tiny", "stream": True} | body)).text
            assert "not here" in streamed
            assert "yes" not in streamed

    asyncio.run(main())
