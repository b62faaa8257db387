"""A small run with a judge, and a judge's server that counts what it is asked."""

import json
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.small import run as small

from bough.appraise import RubricJudge
from bough.engine import Local, OpenAi
from bough.reward import EnvReward, Judged
from bough.train import Checkpointing, Evaluation, Run, Tasks, Warmup


def run() -> Run:
    """Every path gets a number from 0 to 10 by the judge, besides the environment's reward."""
    tasks = Tasks(split="test", count=2)
    return small().replace(
        name="judged",
        warmup=Warmup(demonstrations=12, epochs=5, learning_rate=1e-2, batch_tokens=256),
        evaluation=Evaluation(tasks=tasks, every=100),
        appraisers=(RubricJudge(prompt="{turns}\n{observation}\nFrom 0 to 10?", role="judge"),),
        rewards=(EnvReward(), Judged()),
        models={"judge": OpenAi(model="m", base_url="http://127.0.0.1:9/v1", concurrency=1, retries=0)},
        engine=Local(slots=32, deterministic=True),
        steps=3,
        checkpointing=Checkpointing(every=1, keep=10, trees_every=1),
    )


@dataclass(slots=True)
class Length:
    """The length of any answer: a value for models that cannot judge."""

    unit: float = field(default=1.0)

    def __call__(self, text: str) -> float | None:
        return len(text) / self.unit


def number(body: dict[str, Any]) -> str:
    """Seven of ten answers are a number; the content of the question decides."""
    code = zlib.crc32(json.dumps([body["messages"], body["seed"]]).encode())
    return str(code // 10 % 11) if code % 10 < 7 else "hard to say"


class JudgeServer:
    """Chat completions over HTTP, in a thread of the test.

    Attributes:
        asked: Every question so far: its messages and seed.
        hang_at: Number of the question that never gets an answer; None for no such.
        reached: Set when that question arrives.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], str] = number) -> None:
        self.asked: list[str] = []
        self.hang_at: int | None = None
        self.reached, self._closing = threading.Event(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.asked.append(json.dumps([body["messages"], body["seed"]]))
                if server.hang_at is not None and len(server.asked) == server.hang_at:
                    server.reached.set()
                    server._closing.wait(60)
                    return
                message = {"role": "assistant", "content": answer(body)}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                data = json.dumps({"choices": [choice], "usage": None}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
