"""A chat server that answers by rule: it stands in for a model where a command only has to be run, not to learn."""

import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bough.worlds.code.families_line import NUMBERS

MODELS = ("qwen3:8b", "llama-guard3")


def answer(text: str, seed: object) -> str:
    """Answer the last message of a conversation: by a rule where there is one, else with a random allowed answer."""
    luck = random.Random(f"{text} {seed}")
    if "Write a checklist" in text:
        return "1. It acts.\n2. It ends the task."
    if "Write none if it satisfies no item" in text:
        action = text.partition("It then did this:\n")[2].partition("\n\nChecklist:")[0]
        return luck.choice(["none", f"1: {action}"])
    told, _, listed = text.partition("Its steps, by number:")
    steps: list[str] = re.findall(r"^\d+\. (.*)$", listed, re.MULTILINE)
    if "the list of the verdicts on the steps" in text:
        right = [int(each in _model(told)) for each in steps]
        return f"{right} {'yes' if all(right) else 'no'}"
    if "do all that it was told to" in text and (right := _expression(text)):
        return "yes" if re.findall(r"^> (.*)$", text, re.MULTILINE)[-1:] == [right] else "no"
    if "the list of their numbers" in text:
        return f"{[number for number in range(1, len(steps) + 1) if not luck.randrange(4)]}"
    words = re.findall(r"\w+", text.rpartition("\n")[2].replace(" or ", " ").rpartition(":")[2])
    known = {"good", "bad", "unclear", "useful", "useless", "harmful", "tie", "yes", "no"}
    if "1 if the first did" in text:
        return luck.choice(["1", "2", "tie"])
    return luck.choice([word for word in words if word in known] or ["7"])


def _model(told: str) -> set[str]:
    """The right steps of a problem of `linear_programs`."""
    limits = {f"row {row} {limit}" for row, limit in re.findall(r"\w+ (\d+ \d+) limit (\d+)\.", told)}
    return limits | {f"max {profit}" for profit in re.findall(r"profit (\d+ \d+)\.", told)} | {"solve"}


def _expression(told: str) -> str | None:
    """The answer to a task of `code`."""
    for words, expression in NUMBERS.values():
        form = re.escape(words).replace(r"\{a\}", r"(?P<a>\d+)").replace(r"\{b\}", r"(?P<b>\d+)")
        if found := re.search(f"f is {form} ", told):
            return expression.format_map(found.groupdict())
    return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = answer(asked["messages"][-1]["content"], asked.get("seed"))
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._send(
            {"id": "0", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": counts}
        )

    def _send(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""


@contextmanager
def serve() -> Iterator[str]:
    """Serve on a free port; yields the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
