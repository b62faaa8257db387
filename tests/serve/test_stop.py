"""Stop strings: the answer is cut, the completion that a session records is not."""

import asyncio
from dataclasses import replace

from tests.serve.wire import ByteChat, httpx, scripted, sessions

from bough.engine import Completion, FinishReason
from bough.serve import Prompt, Session
from bough.serve.app import make_app
from bough.serve.session import Completed
from bough.serve.stop import cut_at


def test_what_a_session_records_is_whole() -> None:
    recorded: list[Completion] = []
    session = sessions(scripted("yes\nObs: no")).find("")
    assert session is not None

    class Recording:
        def find(self, key: str) -> Session:
            del key

            async def complete(prompt: Prompt) -> Completed:
                completed = await session.complete(prompt)
                recorded.append(completed.completion)
                return completed

            return replace(session, complete=complete)

    async def main() -> dict[str, object]:
        transport = httpx.ASGITransport(app=make_app(Recording()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            body = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "stop": "\nObs:"}
            return (await client.post("/v1/chat/completions", json=body)).json()

    answer = asyncio.run(main())
    assert answer["choices"][0]["message"]["content"] == "yes"  # type: ignore[index]
    assert answer["usage"]["completion_tokens"] == 3  # type: ignore[index]
    assert ByteChat().text(recorded[0].tokens) == "yes\nObs: no"


def test_columns_are_cut_with_the_tokens() -> None:
    whole = Completion(
        tokens=(*b"ab\xc3\xa9|c", 256),
        logprobs=(-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0),
        entropies=None,
        finish=FinishReason.LENGTH,
        policy_version=3,
        top_probs=(((1, 1.0),),) * 7,
    )
    cut = cut_at(ByteChat(), whole, ["c", "|"])
    assert cut is not None
    assert cut.text == "abé"
    assert cut.completion.finish is FinishReason.STOP
    assert cut.completion.tokens == tuple("abé".encode())
    assert cut.completion.logprobs == (-1.0, -2.0, -3.0, -4.0)
    assert len(cut.completion.top_probs or ()) == 4
    assert cut_at(ByteChat(), whole, ["x"]) is None
