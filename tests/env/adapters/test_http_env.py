"""Environments over HTTP, with a server that counts its episodes."""

import asyncio
import gc
import json
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request

import pytest
from tests.explore.stage import runner, scripted

from bough.env import EnvFault, InProcessHost, Replay, Workers
from bough.env.adapters.http_env import HttpEnv
from bough.explore import Chains
from bough.rollout import Limits
from bough.tree import Outcome, Tree


class Counting:
    """Say the item's number to win; every other answer is repeated."""

    def __init__(self) -> None:
        self.episodes: dict[int, int] = {}
        self.made = 0
        world = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.reply(world.post(self.path, body))

            def reply(self, answer: Any) -> None:
                data = json.dumps(answer).encode()
                self.send_response(500 if answer == "broken" else 200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/count"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/count/create":
            self.made += 1
            self.episodes[self.made] = -1
            return {"id": self.made}
        if path == "/count/close":
            return self.episodes.pop(body["id"], None)
        if path == "/count/reset":
            self.episodes[body["id"]] = body["data_idx"]
            return {"observation": f"item {body['data_idx']}"}
        if body["action"] == "break":
            return "broken"
        right = body["action"] == str(self.episodes[body["id"]])
        return {"observation": body["action"], "reward": float(right), "done": right}


@pytest.fixture
def world() -> Iterator[Counting]:
    world = Counting()
    yield world
    world.server.shutdown()
    world.server.server_close()


def test_an_episode_is_created_played_and_closed(world: Counting) -> None:
    env = HttpEnv(url=world.url, items=100)
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert state.observation == f"item {task.data['item']}"
    wrong = env.step(state, "x\ud800")
    assert (wrong.state.observation, wrong.outcome) == ("x?", Outcome.OPEN)
    right = env.step(wrong.state, str(task.data["item"]))
    assert (right.reward, right.outcome, right.success) == (1.0, Outcome.TERMINATED, True)
    assert not world.episodes
    left = env.start(task)
    assert (len(world.episodes), left.observation) == (1, state.observation)
    env.close()
    assert not world.episodes


class Meeting(Counting):
    """Answers a step when 16 are in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = threading.Barrier(16)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/count/step":
            self.barrier.wait(60)
        return super().post(path, body)


@pytest.mark.parametrize("workers", [0, 2])
def test_as_many_calls_are_in_flight_as_there_are_episodes(workers: int) -> None:
    meeting = Meeting()
    env = HttpEnv(url=meeting.url, items=100)
    host = Workers(env=env, count=workers) if workers else InProcessHost(env=env)

    async def grow() -> tuple[Tree, ...]:
        place = runner(scripted(lambda _: "x"), host, limits=Limits(turns=2))
        return (await place.run(Chains(n=1), env.tasks("train", 16, 0), seed=0)).trees

    async def main() -> None:
        try:
            trees = await grow()
            assert [tree.counts.turns for tree in trees] == [2] * 16
            assert not any(tree.info[0]["text"] == tree.info[2]["text"] for tree in trees)
            # The server is told of the ends of episodes that a limit ended; by a worker before its next call.
            for _ in range(600):
                gc.collect()
                if not meeting.episodes:
                    return
                await asyncio.sleep(0.1)
                if workers:
                    await asyncio.gather(*(host.tasks("train", 1, 0) for _ in range(workers)))
            raise AssertionError(f"left {meeting.episodes}")
        finally:
            await host.close()

    try:
        asyncio.run(main())
    finally:
        meeting.server.shutdown()
        meeting.server.server_close()


def test_an_earlier_state_is_replayed(world: Counting) -> None:
    env = Replay(env=HttpEnv(url=world.url, items=100))
    (task,) = env.tasks("train", 1, 0)
    start = env.start(task)
    env.step(env.step(start, "a").state, "b")
    assert env.step(start, "c").state.observation == "c"
    inner = env.env.start(task)
    env.env.step(inner, "a")
    with pytest.raises(EnvFault, match="need Replay"):
        env.env.step(inner, "a")
    env.close()
    assert not world.episodes


def test_an_episode_without_a_state_is_closed(world: Counting) -> None:
    env = HttpEnv(url=world.url, items=100)
    (task,) = env.tasks("train", 1, 0)
    state = env.step(env.start(task), "a").state
    assert len(world.episodes) == 1
    del state
    gc.collect()
    assert not world.episodes
    kept = Replay(env=env, keep=2)
    states = [kept.start(each) for each in env.tasks("train", 5, 0)]
    assert len(world.episodes) == 2
    assert len(states) == 5
    kept.close()
    assert not world.episodes


def test_too_many_steps_close_the_episode(world: Counting) -> None:
    env = HttpEnv(url=world.url, items=100, max_steps=2)
    state = env.start(env.tasks("test", 1, 0)[0])
    state = env.step(state, "a").state
    assert env.step(state, "a").outcome is Outcome.TRUNCATED
    assert not world.episodes


def test_a_broken_server_is_a_fault_and_a_copy_has_no_episodes(world: Counting) -> None:
    env = HttpEnv(url=world.url, items=100)
    task = env.tasks("train", 1, 0)[0]
    state = env.start(task)
    with pytest.raises(EnvFault, match="status 500"):
        env.step(state, "break")
    assert pickle.loads(pickle.dumps(env)) == env
    with pytest.raises(EnvFault, match="need a running server"):
        HttpEnv(url="http://127.0.0.1:9/x", items=100).start(task)


class Raw:
    """Sends the same bytes to every request, slowly where there is a pause."""

    def __init__(self, data: bytes, pause_s: float = 0.0) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.data, self.pause_s = data, pause_s
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
                with connection:
                    connection.recv(65536)
                    for place in range(len(self.data)) if self.pause_s else ():
                        connection.sendall(self.data[place : place + 1])
                        time.sleep(self.pause_s)
                    connection.sendall(b"" if self.pause_s else self.data)
            except OSError:
                if self.listener.fileno() < 0:
                    return


@pytest.mark.parametrize("data", [b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 99, b"HTTP/1.1 200 OK\r\nx: " + b"y" * 99])
def test_the_deadline_is_for_the_whole_request(data: bytes) -> None:
    raw = Raw(data, pause_s=0.05)
    env = HttpEnv(url=raw.url, items=100, deadline_s=0.5)
    with pytest.raises(EnvFault, match=r"timed out after 0\.5 s"):
        env.start(env.tasks("train", 1, 0)[0])
    raw.listener.close()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
        b"nonsense\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 50_000,
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\n\r\nnull",
    ],
)
def test_a_malformed_reply_is_a_fault(data: bytes) -> None:
    raw = Raw(data)
    env = HttpEnv(url=raw.url, items=100, deadline_s=5)
    with pytest.raises(EnvFault, match="HttpEnv"):
        env.start(env.tasks("train", 1, 0)[0])
    raw.listener.close()


@pytest.mark.parametrize(
    "fields", [{"reward": "much"}, {"reward": [1]}, {"reward": 10**400}, {"reward": float("nan")}, {"done": "false"}]
)
def test_a_malformed_reward_is_a_fault(world: Counting, monkeypatch: pytest.MonkeyPatch, fields: Any) -> None:
    env = HttpEnv(url=world.url, items=100)
    state = env.start(env.tasks("train", 1, 0)[0])
    monkeypatch.setattr(world, "post", lambda *_: {"reward": 1.0, "done": True, **fields})
    with pytest.raises(EnvFault, match=r"HttpEnv: got (the reward|done=)"):
        env.step(state, "x")


def test_an_id_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def body_of(request: Request, deadline_s: float) -> tuple[int, bytes]:
        del deadline_s
        sent.append(request.full_url)
        return 200, json.dumps("a b&c" if request.full_url.endswith("create") else {}).encode()

    monkeypatch.setattr("bough.env.adapters.http_env.body_of", body_of)
    env = HttpEnv(url="http://host", items=100)
    env.start(env.tasks("train", 1, 0)[0])
    assert sent[2] == "http://host/observation?id=a+b%26c"


def test_splits_and_counts() -> None:
    env = HttpEnv(url="http://host/x", items=200)
    items = [{task.data["item"] for task in env.tasks(split, 10, 0)} for split in ("train", "dev", "test")]
    assert not items[0] & items[1] | items[0] & items[2] | items[1] & items[2]
    with pytest.raises(ValueError, match="got count=500; need 0 to"):
        env.tasks("train", 500, 0)
