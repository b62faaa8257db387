"""A chat server that keeps the ledger by rule: it looks up with calls, reads the results, pays, and answers."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

KEY = "secret"
Answer = dict[str, Any]


def say(text: str) -> Answer:
    return {"content": text}


def call(tool: str, /, **arguments: object) -> Answer:
    return raw(tool, json.dumps(arguments))


def raw(name: str, arguments: str) -> Answer:
    return {"content": None, "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}


def keep_accounts(body: dict[str, Any]) -> Answer:
    """The oracle: it knows what the messages say, and nothing else."""
    assert {tool["function"]["name"] for tool in body["tools"]} == {"get", "pay"}
    prompt = next(each["content"] for each in body["messages"] if each["role"] == "user").split()
    asked = {each["id"]: each["function"] for row in body["messages"] for each in row.get("tool_calls", ())}
    known: dict[str, int] = {}
    for row in body["messages"]:
        if row["role"] == "tool" and not row["content"].startswith("error"):
            function = asked[row["tool_call_id"]]
            if function["name"] == "pay":
                return say("done")
            name, balance = row["content"].split()
            known[name] = int(balance)
    names = prompt[prompt.index("of") + 1 : prompt.index("under")]
    missing = [name for name in names if name not in known]
    if missing:
        calls = [call("get", name=name)["tool_calls"][0] for name in missing]
        return {"content": "I look up.", "tool_calls": calls}
    return call("pay", name=next(name for name in names if known[name] < int(prompt[-1])), n=int(prompt[1]))


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and every request so far; it refuses what OpenAI's server refuses."""
    bodies: list[dict[str, Any]] = []

    async def models(request: Request) -> JSONResponse:
        return _refused(request) or JSONResponse({"object": "list", "data": [{"id": "rule"}]})

    async def chat(request: Request) -> JSONResponse:
        body = await request.json()
        if refused := _refused(request) or _wrong(body):
            return refused
        bodies.append(body)
        message: Answer = {"role": "assistant", **answer(body)}
        for number, each in enumerate(message.get("tool_calls", ())):
            each["id"] = f"call_{len(bodies)}_{number}"
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return JSONResponse({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}})

    routes = [Route("/v1/models", models), Route("/v1/chat/completions", chat, methods=["POST"])]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", bodies
        finally:
            server.should_exit = True
            thread.join()


def _refused(request: Request) -> JSONResponse | None:
    if request.headers.get("authorization") == f"Bearer {KEY}":
        return None
    return _error(401, "Incorrect API key provided")


def _wrong(body: dict[str, Any]) -> JSONResponse | None:
    """An unknown model; calls without JSON; results of no call, or calls without results."""
    if body["model"] != "rule":
        return _error(404, f"The model {body['model']} does not exist")
    waiting: set[str] = set()
    for row in body["messages"]:
        if row["role"] == "tool":
            if row["tool_call_id"] not in waiting:
                return _error(400, "got a result of no call")
            waiting.remove(row["tool_call_id"])
            continue
        if waiting:
            return _error(400, "got a call without its result")
        for each in row.get("tool_calls", ()):
            json.loads(each["function"]["arguments"])
            waiting.add(each["id"])
    return None


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "code": None}}, status_code=status)
