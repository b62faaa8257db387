"""Environments behind OpenEnv's WebSocket protocol."""

import gc
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from bough.env import EnvFault
from bough.env.adapters.openenv import openenv_env
from bough.tree import Outcome


def play(socket: ServerConnection) -> None:
    """Guess the seed's last digit; a guess of more than one character is refused."""
    secret, guesses = 0, 0
    for raw in socket:
        message = json.loads(raw)
        if message["type"] == "close":
            return
        if message["type"] == "reset":
            secret, guesses = message["data"]["seed"] % 10, 0
            reply: dict[str, Any] = {"observation": {"text": "guess"}, "reward": None, "done": False}
        elif message["data"]["message"].startswith("raw "):
            socket.send(message["data"]["message"][4:])
            continue
        elif message["data"]["message"].startswith("slow"):
            time.sleep(0.6)
            reply = {"observation": {"text": message["data"]["message"]}, "reward": 0.0, "done": False}
        elif len(message["data"]["message"]) > 1:
            socket.send(json.dumps({"type": "error", "data": {"message": "long", "code": "VALIDATION_ERROR"}}))
            continue
        elif message["data"]["message"] == "!":
            socket.send(json.dumps({"type": "error", "data": {"message": "broke", "code": "EXECUTION_ERROR"}}))
            continue
        else:
            guesses += 1
            right = message["data"]["message"] == str(secret)
            reply = {"observation": {"text": f"guess {guesses}"}, "reward": float(right), "done": right}
        socket.send(json.dumps({"type": "observation", "data": reply}))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(play, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


def test_an_episode_over_the_protocol(url: str) -> None:
    env = openenv_env(url, max_steps=4)
    (task,) = env.tasks("train", 1, 0)
    start = env.start(task)
    assert start.observation == "guess"
    digit = int(str(task.data["seed"])) % 10
    wrong = env.step(start, str((digit + 1) % 10))
    assert (wrong.state.observation, wrong.outcome, wrong.reward) == ("guess 1", Outcome.OPEN, 0.0)
    refused = env.step(wrong.state, "many words")
    assert (refused.valid, refused.state.observation) == (False, "guess 1")
    right = env.step(refused.state, str(digit))
    assert (right.outcome, right.success) == (Outcome.TERMINATED, True)
    assert env.step(start, str(digit)).success, "an earlier state is replayed in another session"
    env.close()


def test_a_session_without_a_state_is_closed(url: str) -> None:
    env = openenv_env(url).env
    (task,) = env.tasks("train", 1, 0)
    before = threading.active_count()
    states = [env.start(task) for _ in range(5)]
    assert threading.active_count() > before
    del states
    gc.collect()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_a_fault_of_the_server_is_none_of_the_policy(url: str) -> None:
    env = openenv_env(url)
    (task,) = env.tasks("train", 1, 0)
    with pytest.raises(EnvFault, match=r"broke \(EXECUTION_ERROR"):
        env.step(env.start(task), "!")
    with pytest.raises(EnvFault, match="need a running server"):
        openenv_env("http://127.0.0.1:9").start(task)


def test_a_late_reply_is_never_the_reply_to_a_later_action(url: str) -> None:
    env = openenv_env(url, deadline_s=0.3)
    (task,) = env.tasks("train", 1, 0)
    start, inner = env.start(task), env.env.start(task)
    for each, state in ((env, start), (env.env, inner)):
        with pytest.raises(EnvFault, match="got no reply to step"):
            each.step(state, "slow one")
    time.sleep(0.5)
    with pytest.raises(EnvFault, match="got no reply to step"):
        env.env.step(inner, "x")
    assert env.step(start, "x").state.observation == "guess 1"


@pytest.mark.parametrize(
    "reply",
    [
        "[]",
        "null",
        '"text"',
        "[" * 50_000,
        *(f'{{"data": {data}}}' for data in ("[]", "null", '"text"')),
        *(f'{{"data": {{"observation": {observation}}}}}' for observation in ("[]", "null", '"text"', "[[]]")),
        *(f'{{"data": {{"observation": {{}}, "reward": {reward}}}}}' for reward in ('"much"', "[]", "NaN", "1" * 400)),
        '{"data": {"observation": {}, "done": "false"}}',
    ],
)
def test_a_malformed_reply_is_a_fault(url: str, reply: str) -> None:
    env = openenv_env(url)
    (task,) = env.tasks("train", 1, 0)
    with pytest.raises(EnvFault, match="OpenEnv"):
        env.step(env.start(task), f"raw {reply}")
