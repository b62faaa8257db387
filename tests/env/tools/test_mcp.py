"""MCP servers as tools: servers of both versions of the SDK, over standard input and output and over HTTP.

What a server's SDK does not change is tested with a server by hand, which starts in a fraction of the time.
`test_mcp_sdk1.py` runs some tests of this file again with version 1 of the SDK as the client.
"""

# ruff: noqa: ARG001

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.env.play import is_running
from tests.env.tools.mcp_http import SERVER, end, free_port, serve, wait
from tests.forks import Fork

from bough.config import dump, load
from bough.env import Branching, EnvFault, McpHttp, McpStdio, Replay, State, Step, ToolsEnv, call, tools_env
from bough.tree import Action

HAND = str(Path(__file__).with_name("mcp_hand.py"))
SLEEP = "import time; time.sleep(60)"
SDK1 = Path(sys.prefix) / "mcp1"
PATHS = {1: str(SDK1), 2: ""}
"""The path of a server's process, by the version of the SDK that it uses."""


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"count to {n}", "goal": n} for n in range(30)]


def counted(state: None, row: Mapping[str, Any], answer: str) -> bool:
    return answer == str(row["goal"])


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def stdio(**settings: Any) -> ToolsEnv | Replay:
    server = McpStdio(command=sys.executable, **{"args": (HAND, "counter"), **settings})
    return tools_env(tools=[double], servers=[server], tasks=rows, reward=counted)


def first(env: ToolsEnv | Replay) -> State:
    return env.start(env.tasks("train", 1, 0)[0])


def text(step: Step) -> str:
    (message,) = step.state.observation
    return message.content  # type: ignore[union-attr]


def pid(step: Step) -> int:
    return int(text(step).split()[0])


def ends(process: int) -> bool:
    deadline = time.monotonic() + 120
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(process)


@pytest.fixture(scope="module", params=PATHS)
def http(request: pytest.FixtureRequest) -> Iterator[Callable[..., ToolsEnv | Replay]]:
    port = free_port()
    process = serve(port, PATHS[request.param])
    wait(port)

    def env(**settings: Any) -> ToolsEnv | Replay:
        server = McpHttp(url=f"http://127.0.0.1:{port}/mcp", **settings)
        return tools_env(tools=[double], servers=[server], tasks=rows, reward=counted)

    yield env
    end(process)


@pytest.mark.parametrize("sdk", PATHS)
def test_tools_of_a_process_are_listed_called_and_checked_beside_functions(sdk: int) -> None:
    env = stdio(args=(SERVER,), env={"PYTHONPATH": PATHS[sdk]})
    assert env.branching is Branching.NONE
    state = first(env)
    assert [tool.name for tool in state.tools] == ["double", "add", "refuse", "hang", "die", "process"]
    seen = []
    for action in (
        call("add", amount=3),
        call("add", amount="x"),
        call("refuse"),
        call("double", number=4),
        call("add", amount=4),
    ):
        step = env.step(state, action)
        state = step.state
        seen.append((text(step), step.valid))
    assert seen[0] == ("3", True)
    assert seen[1] == ("error: got wrong arguments of add: arguments['amount']: 'x' is not of type 'integer'", False)
    assert seen[2][0].startswith("error: ")
    assert "not today" in seen[2][0]
    assert seen[3:] == [("8", True), ("7", True)]
    step = env.step(state, call("process"))
    assert f"SDK {sdk}" in text(step)
    env.close()
    assert ends(pid(step))


def test_each_episode_has_a_process_that_ends_with_it() -> None:
    env = stdio(args=(HAND, "counter", "{goal}", "$HOME", "{other}"), env={"BEGIN": "{goal}"})
    (task,) = env.tasks("train", 1, 0)
    goal = task.data["goal"]
    start = env.start(task)
    one, two = env.step(start, call("process")), env.step(start, call("process"))
    assert pid(one) != pid(two)
    assert str([str(goal), os.environ["HOME"], "{other}"]) in text(one)
    assert text(env.step(one.state, call("add", amount=1))) == str(int(str(goal)) + 1)
    end = env.step(two.state, Action(text=str(goal)))
    assert end.success
    assert ends(pid(two)), "the episode is over"
    server = pid(one)
    del one
    assert ends(server), "nothing holds the state"


def test_a_child_that_left_the_session_of_its_server_ends_with_it() -> None:
    env = stdio(args=(HAND, "plain"))
    step = env.step(first(env), call("say", child=True))
    assert is_running(pid(step))
    env.close()
    assert ends(pid(step))


def test_a_killed_server_is_a_fault_and_the_episode_starts_again_on_a_fresh_one() -> None:
    env = stdio()
    start = first(env)
    step = env.step(start, call("process"))
    os.kill(pid(step), signal.SIGKILL)
    with pytest.raises(EnvFault, match=r"MCP server .*mcp_hand\.py counter, tool add: ") as fault:
        env.step(step.state, call("add", amount=1))
    assert "no result within" not in str(fault.value), "no wait for the deadline of a call"
    with pytest.raises(EnvFault, match="tool die: "):
        env.step(start, call("die"))
    assert text(env.step(start, call("add", amount=2))) == "2", "a retry from the first state has a new server"
    env.close()


def test_a_hung_server_is_a_fault_and_ends() -> None:
    env = stdio(deadline_s=1.5)
    step = env.step(first(env), call("process"))
    with pytest.raises(EnvFault, match=r"tool hang: no result within 1\.5 s"):
        env.step(step.state, call("hang"))
    assert ends(pid(step))


def test_a_stateless_server_serves_all_episodes_and_is_restarted() -> None:
    env = stdio(stateless=True)
    assert env.branching is Branching.COPY
    start = first(env)
    one, two = env.step(start, call("process")), env.step(first(env), call("process"))
    assert pid(one) == pid(two)
    os.kill(pid(one), signal.SIGKILL)
    with pytest.raises(EnvFault, match="tool add"):
        env.step(one.state, call("add", amount=1))
    after = env.step(one.state, call("process"))
    assert pid(after) != pid(one)
    env.close()
    assert ends(pid(after))


def test_a_deterministic_server_is_replayed() -> None:
    env = stdio(deterministic=True)
    assert env.branching is Branching.REPLAY
    one = env.step(first(env), call("add", amount=3))
    left, right = env.step(one.state, call("add", amount=3)), env.step(one.state, call("add", amount=5))
    assert (text(left), text(right), right.replayed_steps) == ("6", "8", 1)
    assert load(dump(env)) == env
    env.close()


def test_a_server_that_does_not_start_is_a_fault_with_the_reason() -> None:
    for settings, message in (
        ({"command": "no-such-program"}, "did not start: FileNotFoundError"),
        ({"command": sys.executable, "folder": HAND + "x"}, "x', which does not exist; need a folder: make it"),
        ({"command": sys.executable, "folder": HAND}, "mcp_hand.py', which is a file; need a folder"),
        ({"command": HAND}, r"mcp_hand.py', a file that is not executable; need a program: run chmod \+x"),
        ({"command": str(Path(HAND).parent)}, "tools', a folder; need a program"),
        ({"command": sys.executable, "args": ("a\0b",)}, "got a zero byte in the command"),
        ({"command": sys.executable, "args": ("-c", "")}, "did not start: "),
        ({"command": sys.executable, "args": ("-c", SLEEP), "startup_s": 1.0}, "within 1 s"),
    ):
        env = tools_env(servers=[McpStdio(**settings)], tasks=rows, reward=counted)  # type: ignore[arg-type]
        with pytest.raises(EnvFault, match=message):
            first(env)
    with pytest.raises(ValueError, match="need more than 0 seconds"):
        McpHttp(url="http://127.0.0.1/", deadline_s=0)
    with pytest.raises(ValueError, match="got copy with a server of the episode"):
        tools_env(servers=[McpStdio(command="x")], tasks=rows, reward=counted, branching=Branching.COPY)


def test_tools_over_http(http: Callable[..., ToolsEnv | Replay]) -> None:
    env = http(stateless=True, headers={"X-Key": "$HOME"})
    start = first(env)
    before = int(text(env.step(start, call("add", amount=0))))
    assert text(env.step(start, call("add", amount=3))) == str(before + 3)
    assert "not today" in text(env.step(start, call("refuse")))
    env.close()


@pytest.mark.parametrize("http", [2], indirect=True)
def test_a_server_that_hangs_over_http_is_a_fault(http: Callable[..., ToolsEnv | Replay]) -> None:
    slow = http(deadline_s=1.5)
    with pytest.raises(EnvFault, match=r"tool hang: no result within 1\.5 s"):
        slow.step(first(slow), call("hang"))


def test_no_server_at_an_address_is_a_fault() -> None:
    nowhere = tools_env(servers=[McpHttp(url="http://127.0.0.1:9/mcp")], tasks=rows, reward=counted)
    with pytest.raises(EnvFault, match="did not start"):
        first(nowhere)


def say_and_sleep() -> None:
    """A run that has a server with a child."""
    env = stdio(args=(HAND, "plain"))
    step = env.step(first(env), call("say", child=1))
    print(pid(step), flush=True)
    time.sleep(30)


def test_no_process_outlives_a_killed_run() -> None:
    with Fork(say_and_sleep) as run:
        server = int(run.line())
        assert is_running(server)
        run.send(signal.SIGKILL)
        assert ends(server)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ImportError, match=r"pip install 'bough-rl\[mcp\]'"):
        first(stdio())
