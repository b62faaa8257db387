"""Tables of requests: what each is answered, or by which name it is refused. One server answers them all."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.serve.wire import ByteChat, httpx

from bough.engine import Request, Sampling, Scripted
from bough.serve import Conversations, EngineSession
from bough.serve.app import make_app
from bough.tree import Action, BadCall, Tool, ToolCall
from bough.tree.thinking import ThinkingState

CALL = '{"name": "add", "arguments": {"a": 1}}'
OTHER = '{"name": "add", "arguments": {"a": 2}}'
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class LineChat(ByteChat):
    """Bytes, in which each line that begins with "{" is a call; a template with thinking."""

    prompt_thinking = ThinkingState.ABSENT

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        del tools
        lines = self.text(tokens).split("\n")
        texts = [line for line in lines if not line.startswith("{")]
        return Action(text="\n".join(texts), calls=tuple(map(_call, [each for each in lines if each not in texts])))


def _call(line: str) -> ToolCall | BadCall:
    try:
        row = json.loads(line)
        return ToolCall(name=row["name"], arguments=row["arguments"])
    except (ValueError, KeyError) as error:
        return BadCall(text=line, problem=str(error))


def _after_say(request: Request) -> tuple[int, ...]:
    """What the last message after SAY has, as the answer."""
    return LineChat().write(LineChat().text(request.prompt_tokens).rpartition("SAY ")[2])


ENGINE = Scripted(script=_after_say, context_tokens=4096)
SERVED = EngineSession(
    ENGINE, Conversations(LineChat()), models=("tiny", "gpt-4o"), sampling=Sampling(max_tokens=200), key=""
)
APP = make_app(SERVED)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of request.

    Attributes:
        name: Its name.
        body: The fields besides those of the dialect's smallest request; a field that is ... is left out.
        status: The status of the answer.
        words: What the error's message has, or the text of a stream.
        want: Values of the answer by their places, `choices.0.message`.
    """

    name: str
    body: Mapping[str, Any]
    status: int = 200
    words: Sequence[str] = ()
    want: Mapping[str, Any] = field(default_factory=dict)


def refused(name: str, body: Mapping[str, Any], *words: str, status: int = 400) -> Kind:
    return Kind(name=name, body=body, status=status, words=words)


def wrong_values(values: Mapping[str, Sequence[Any]]) -> list[Kind]:
    """A kind for each value of each field; the error has the field's name at its begin."""
    return [refused(f"{name} {value!r:.40}", {name: value}, name) for name in values for value in values[name]]


def post(path: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(path, json=body, headers=headers)

    return asyncio.run(main())


def at(value: Any, place: str) -> Any:
    for part in place.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    return value


def whole_body(smallest: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The fields of a request."""
    return {name: value for name, value in {**smallest, **kind.body}.items() if value is not ...}


def check(path: str, smallest: Mapping[str, Any], kind: Kind) -> Any:
    """Posts a request and compares its answer; returns the JSON, or the text of a stream."""
    return compare(post(path, whole_body(smallest, kind)), kind)


def check_all(path: str, smallest: Mapping[str, Any], kinds: Sequence[Kind]) -> dict[str, Any]:
    """Posts the requests of a table by one client and compares all answers; returns them by their kinds' names."""

    async def main() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.post(path, json=whole_body(smallest, kind)) for kind in kinds]

    found, wrong = dict[str, Any](), list[str]()
    for kind, answer in zip(kinds, asyncio.run(main()), strict=True):
        try:
            found[kind.name] = compare(answer, kind)
        except (AssertionError, LookupError) as error:
            wrong.append(f"{kind.name}: {error!r:.400}")
    assert not wrong, "\n".join(wrong)
    assert len(found) == len(kinds), "kinds have different names"
    return found


def compare(answer: httpx.Response, kind: Kind) -> Any:
    """Compares an answer with its kind; returns the JSON, or the text of a stream."""
    assert answer.status_code == kind.status, answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        for word in kind.words:
            assert word in answer.text
        return answer.text
    found = answer.json()
    for word in kind.words:
        assert word in found["error"]["message"], found
    for place, value in kind.want.items():
        assert at(found, place) == value, place
    return found
